package plugins

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/plugin/author"
	"github.com/sentinel-runtime/sentinel/sdk/toolchain"
)

// buildFlags are those of plugin build.
type buildFlags struct {
	out     string
	install bool
	watch   bool
}

// pluginBuildCommand builds a project and prints the manifest of the module.
func (a verbs) pluginBuildCommand() *cobra.Command {
	var f buildFlags
	c := &cobra.Command{
		Use: "build [DIR]", Short: "Build a project's module, check and describe it",
		Long: "Builds the project in DIR, the current folder if it is left out, with the tools of its language.\n" +
			"The module takes its place only if a host would load it, and in one step: a running server that\n" +
			"watches the folder has it live a moment later.",
		Example: "  sentinel plugin build\n  sentinel plugin build shout --install\n  sentinel plugin build --install --watch",
		Args:    app.RangeArgs(0, 1, "the folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := toolchain.Open(a.Path(argument(args)))
			if err != nil {
				return err
			}
			if !f.watch {
				return a.build(cmd.Context(), p, f)
			}
			a.Info("watching %s; Ctrl-C ends it", a.Relative(p.Dir))
			err = author.Watch(cmd.Context(), p.Dir, func() {
				if err := a.build(cmd.Context(), p, f); err != nil && cmd.Context().Err() == nil {
					a.Report(err) // continue: the next change may repair it
				}
			})
			if errors.Is(err, app.ErrInterrupted) {
				return nil // it is how one leaves
			}
			return err
		},
	}
	c.Flags().StringVarP(&f.out, "file", "f", "", "where the module goes (default: DIR/NAME.wasm)")
	c.Flags().BoolVar(&f.install, "install", false, "put it into the plugins folder too, where it is live")
	c.Flags().BoolVar(&f.watch, "watch", false, "build again after each change")
	return c
}

func (a verbs) build(ctx context.Context, p toolchain.Project, f buildFlags) error {
	out := []string{p.Module()}
	if f.out != "" {
		out[0] = a.Path(f.out)
	}
	if f.install {
		out = append(out, filepath.Join(a.pluginDir(), p.Name+".wasm"))
	}
	var r author.Report
	build := func() (name string, err error) {
		r, err = author.Build(ctx, p, a.toolOutput(), out...)
		return p.Name + ".wasm", err
	}
	var err error
	if f.install {
		err = a.WriteProjectFile(a.pluginDir(), build)
	} else {
		_, err = build()
	}
	if err != nil {
		return err
	}
	if a.Flags.Output != output.FormatTable {
		return a.WriteJSON(r)
	}
	var types []string
	for _, s := range r.Manifest.Steps {
		types = append(types, s.Type)
	}
	if err := a.Out.Printf("%s  %s %s  %s  %s  sha256 %.12s\n", a.Relative(out[0]), r.Manifest.Name, r.Manifest.Version,
		strings.Join(types, " "), megabytes(int64(r.Size)), r.Digest); err != nil {
		return err
	}
	for _, permission := range r.Manifest.Permissions {
		a.Info("asks for %s", asked(permission.Use, permission.Names, permission.Reason))
	}
	if f.install {
		a.Info("installed %s", a.Relative(out[1]))
		if len(r.Manifest.Permissions) > 0 {
			a.Info("next: sentinel plugin allow %s", r.Manifest.Name)
		}
	}
	return nil
}

// asked is one permission in words.
func asked(use string, names []string, reason string) string {
	s := use
	if len(names) > 0 {
		s += " " + strings.Join(names, " ")
	}
	return s + ": " + reason
}
