package plugins

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/sdk/toolchain"
)

// pluginNewCommand makes a project that builds at once.
func (a verbs) pluginNewCommand() *cobra.Command {
	var lang, dir string
	c := &cobra.Command{
		Use: "new NAME", Short: "Make a project for a step plugin of your own",
		Long: "Makes the folder NAME with a step type that works, its tests, and a copy of the language's SDK:\n" +
			"it builds without a network. A folder with something in it is left alone.",
		Example: "  sentinel plugin new shout --lang go\n  sentinel plugin new json_diff --lang rust --dir plugins-src/json_diff",
		Args:    app.ExactArgs("the name"),
		RunE: func(_ *cobra.Command, args []string) error {
			l, err := toolchain.Lookup(lang)
			if err != nil {
				return app.NewUsageError("plugin new: "+err.Error(), "--lang chooses one")
			}
			if err := toolchain.CheckName(args[0]); err != nil {
				return app.NewUsageError("plugin new: "+err.Error(), "the name is that of a step type too")
			}
			to := dir
			if to == "" {
				to = args[0]
			}
			p, err := toolchain.Create(a.Path(to), args[0], l)
			if err != nil {
				return err
			}
			return a.created(p)
		},
	}
	var names []string
	for _, l := range toolchain.Languages() {
		names = append(names, l.Name)
	}
	c.Flags().StringVar(&lang, "lang", "go", "language: "+strings.Join(names, ", "))
	c.Flags().StringVar(&dir, "dir", "", "folder of the project (default: NAME)")
	return c
}

// created prints the new files and the next commands.
func (a verbs) created(p toolchain.Project) error {
	if a.Flags.Output != output.FormatTable {
		return a.WriteJSON(map[string]string{"dir": p.Dir, "name": p.Name, "language": p.Language.Name, "source": p.Language.Source})
	}
	dir := a.Relative(p.Dir)
	if err := a.Out.Printf("%s\n", dir); err != nil {
		return err
	}
	a.Info("next: edit %s/%s, then sentinel plugin build %s, sentinel plugin test %s", dir, p.Language.Source, output.Quote(dir), output.Quote(dir))
	if err := p.Language.MissingIn(p.Dir); err != nil {
		a.Info("%s", a.Paint.Warn("to build it: ")+app.Block(err.Error()))
	}
	return nil
}
