package operations

import (
	"encoding/json"
	"os"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/config"
)

// configCommand shows the settings of the process. It needs no store.
func (a verbs) configCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "config", Short: "Look at the configuration",
		Example: "  sentinel config show\n  sentinel config check",
		Args:    app.ExactArgs(),
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var origin bool
	show := &cobra.Command{
		Use: "show [KEY]", Short: "Show every setting, and with --origin where it comes from",
		Example: "  sentinel config show limits.memory\n  sentinel config show --origin",
		Args:    app.RangeArgs(0, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			l, err := a.Settings()
			if err != nil {
				return err
			}
			return a.showSettings(l, args, origin)
		},
	}
	show.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return config.Keys(), cobra.ShellCompDirectiveNoFileComp
	}
	show.Flags().BoolVar(&origin, "origin", false, "say where each value comes from")
	c.AddCommand(show,
		&cobra.Command{
			Use: "schema", Short: "Write the JSON Schema of the configuration file",
			Example: "  sentinel config schema > config.schema.json",
			Args:    app.ExactArgs(),
			RunE: func(*cobra.Command, []string) error {
				return a.Out.JSON(config.Schema())
			},
		},
		&cobra.Command{
			Use: "path", Short: "Print the path of the file that is read",
			Example: "  sentinel config path",
			Args:    app.ExactArgs(),
			RunE: func(*cobra.Command, []string) error {
				return a.Out.Printf("%s\n", config.Path(a.Env.Getenv))
			},
		},
		&cobra.Command{
			Use: "check [FILE]", Short: "Report what is wrong with a configuration file",
			Example: "  sentinel config check\n  sentinel config check ./config.json",
			Args:    app.RangeArgs(0, 1),
			RunE: func(_ *cobra.Command, args []string) error {
				opt := a.ConfigOptions(nil, nil)
				if len(args) > 0 {
					opt.File = a.Path(args[0])
					if _, err := os.Stat(opt.File); err != nil {
						return app.NotFound("", "no file %q", args[0])
					}
				}
				l, err := config.Load(opt)
				if err != nil {
					return app.Invalid(err)
				}
				m, err := a.models(l) // variables of the environment are a part of what a start reads
				if err != nil {
					return app.Invalid(err)
				}
				_ = m.Close() // nothing was requested
				a.Info("%s", inOrder(l))
				return nil
			},
		})
	return c
}

// showSettings writes the settings, or the one that was named.
func (a verbs) showSettings(l *config.Loaded, only []string, origin bool) error {
	if len(only) > 0 {
		for _, s := range l.Settings {
			if s.Key == only[0] {
				return a.WriteJSON(s.Value)
			}
		}
		return app.NotFound("`sentinel config show` lists them", "there is no setting %q", only[0])
	}
	if done, err := app.WriteItems(a.App, l.Settings, l.Settings); done {
		return err
	}
	var rows []output.Row
	for _, s := range l.Settings {
		value, err := json.Marshal(s.Value)
		if err != nil {
			return err
		}
		r := output.Row{output.Escape(s.Key), output.ClipJSON(value, 60)}
		if origin {
			r = append(r, a.PaintOut.Dim(output.Escape(s.Origin)))
		}
		rows = append(rows, append(r, a.PaintOut.Dim(output.Escape(s.Doc))))
	}
	return a.Pairs(rows)
}
