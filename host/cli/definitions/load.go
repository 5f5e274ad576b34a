package definitions

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// loadCommand stores the sentinels of a file, a folder or the project.
func (a verbs) loadCommand() *cobra.Command {
	return &cobra.Command{
		Use: "load [FILE|FOLDER]", Short: "Store the sentinels of a file or folder",
		Example: "  sentinel load\n  sentinel load nightly.json",

		Long: "Without an argument: those of the project, .sentinel/sentinels and .continuum/sentinels.",
		Args: app.RangeArgs(0, 1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			paths := a.Folders()
			if len(args) > 0 {
				paths = []string{a.Path(args[0])}
			}
			s, err := a.Connect(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer a.CloseSession(s, &err)
			if s.ByURL {
				return a.sendFiles(cmd.Context(), s, paths)
			}
			return a.load(cmd.Context(), s, paths, len(args) > 0)
		},
	}
}

// loaded is the result of sentinel/load.
type loaded struct {
	Loaded   []saved       `json:"loaded"`
	Problems []problemFile `json:"problems,omitempty"`
}

// A problemFile is a file that is not a valid definition.
type problemFile struct {
	File    string `json:"file"`
	Problem string `json:"problem"`
}

// load loads one path after the other. A bad file does not affect the others, but the exit
// code reports it.
func (a verbs) load(ctx context.Context, s *app.Session, paths []string, named bool) error {
	all := loaded{Loaded: []saved{}}
	for _, path := range paths {
		if !named && !app.IsDir(path) {
			continue
		}
		var out loaded
		if err := s.Call(ctx, "sentinel/load", map[string]any{"path": path}, &out); err != nil {
			return app.Invalid(err)
		}
		all.Loaded = append(all.Loaded, out.Loaded...)
		all.Problems = append(all.Problems, out.Problems...)
	}
	return a.showLoaded(all, paths[0])
}

// sendFiles is load for a server that cannot read our files. A project may have either of
// the two folders, so a missing one is not an error.
func (a verbs) sendFiles(ctx context.Context, s *app.Session, paths []string) error {
	all := loaded{Loaded: []saved{}}
	for _, path := range paths {
		files := []string{path}
		if app.IsDir(path) {
			files = a.DefinitionFiles(path)
		}
		for _, file := range files {
			out, err := a.send(ctx, s, file)
			switch {
			case err == nil:
				all.Loaded = append(all.Loaded, out)
			case errors.Is(err, os.ErrNotExist):
			case abi.CodeOf(err) == abi.BadFields || errors.As(err, new(sentinels.Problems)):
				all.Problems = append(all.Problems, problemFile{a.Relative(file), err.Error()})
			default:
				return err
			}
		}
	}
	return a.showLoaded(all, paths[0])
}

// send stores the definition of one file in the server. The same text again is
// the same revision, so sending a folder twice changes nothing.
func (a verbs) send(ctx context.Context, s *app.Session, file string) (out saved, err error) {
	if _, err := os.Stat(file); err != nil {
		return out, err
	}
	src, err := a.ReadSource(a.Relative(file))
	if err != nil {
		return out, err
	}
	params := map[string]any{"definition": string(src.Text), "replace": true}
	src.PlaceBeside(params)
	return out, app.NameFile(s.Call(ctx, "sentinel/create", params, &out), src)
}

// showLoaded prints what was stored and what was not.
func (a verbs) showLoaded(all loaded, first string) error {
	if a.Flags.Output != output.FormatTable {
		if err := a.WriteJSON(all); err != nil {
			return err
		}
	} else if len(all.Loaded) > 0 {
		rows := []output.Row{output.Head(a.PaintOut, "SENTINEL", "REVISION", "NAME")}
		for _, l := range all.Loaded {
			rows = append(rows, output.Row{output.Escape(l.SentinelID), output.Number(l.Revision), output.Clip(l.Name, 60)})
		}
		if err := a.Table(rows); err != nil {
			return err
		}
		for _, l := range all.Loaded {
			for i := range l.Problems {
				l.Problems[i].File = a.Relative(l.Problems[i].File)
			}
			a.ShowProblems(l.Problems)
		}
	}
	for _, p := range all.Problems {
		a.PrintErr("%s\n", app.Block(p.Problem))
	}
	if len(all.Problems) > 0 {
		a.ErrorMessage(output.Plural(len(all.Problems), "file is", "files are")+" not loaded", "")
		return app.ExitError(app.ExitInvalid)
	}
	if len(all.Loaded) == 0 {
		a.Info("no definitions to load in %s", a.Relative(first))
	}
	return nil
}
