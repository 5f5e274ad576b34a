package cli

import (
	"encoding/json"
	"os"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/config"
)

// configCommand shows what is settled for the process. It needs no store.
func (a *app) configCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "config", Short: "Look at the configuration", Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var origin bool
	show := &cobra.Command{
		Use: "show [KEY]", Short: "Show every setting, and with --origin where it comes from", Args: between(0, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			l, err := a.settings()
			if err != nil {
				return err
			}
			return a.showSettings(l, args, origin)
		},
	}
	show.Flags().BoolVar(&origin, "origin", false, "say where each value comes from")
	c.AddCommand(show,
		&cobra.Command{
			Use: "schema", Short: "Write the JSON Schema of the configuration file", Args: exactly(),
			RunE: func(*cobra.Command, []string) error {
				return a.out.json(config.Schema())
			},
		},
		&cobra.Command{
			Use: "path", Short: "Say which file is read", Args: exactly(),
			RunE: func(*cobra.Command, []string) error {
				return a.out.printf("%s\n", config.Path(a.env.Getenv))
			},
		},
		&cobra.Command{
			Use: "check [FILE]", Short: "Report what is wrong with a configuration file", Args: between(0, 1),
			RunE: func(_ *cobra.Command, args []string) error {
				opt := config.Options{Getenv: a.env.Getenv, Flags: a.set(nil)}
				if len(args) > 0 {
					opt.File = a.path(args[0])
					if _, err := os.Stat(opt.File); err != nil {
						return notFound("", "no file %q", args[0])
					}
				}
				l, err := config.Load(opt)
				if err != nil {
					return invalid(err)
				}
				a.say("%s is in order", l.File)
				return nil
			},
		})
	return c
}

// showSettings writes the settings, or the one that was named.
func (a *app) showSettings(l *config.Loaded, only []string, origin bool) error {
	if len(only) > 0 {
		for _, s := range l.Settings {
			if s.Key == only[0] {
				return a.writeJSON(s.Value)
			}
		}
		return notFound("`sentinel config show` lists them", "there is no setting %q", only[0])
	}
	if a.flags.output != asTable {
		return a.writeJSON(l.Settings)
	}
	var rows []row
	for _, s := range l.Settings {
		value, err := json.Marshal(s.Value)
		if err != nil {
			return err
		}
		r := row{escaped(s.Key), clipJSON(value, 60)}
		if origin {
			r = append(r, a.paintOut.dim(escaped(s.Origin)))
		}
		rows = append(rows, append(r, a.paintOut.dim(escaped(s.Doc))))
	}
	return a.table(rows)
}
