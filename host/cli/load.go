package cli

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// loadCommand stores the sentinels of a file, a folder or the project.
func (a *app) loadCommand() *cobra.Command {
	return &cobra.Command{
		Use: "load [FILE|FOLDER]", Short: "Store the sentinels of a file or folder",
		Long: "Without an argument: those of the project, .sentinel/sentinels and .continuum/sentinels.",
		Args: between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			paths := a.folders()
			if len(args) > 0 {
				paths = []string{a.path(args[0])}
			}
			s, err := a.connect(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer a.closing(s, &err)
			if s.away {
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
func (a *app) load(ctx context.Context, s *session, paths []string, named bool) error {
	all := loaded{Loaded: []saved{}}
	for _, path := range paths {
		if !named && !isDir(path) {
			continue
		}
		var out loaded
		if err := s.call(ctx, "sentinel/load", map[string]any{"path": path}, &out); err != nil {
			return invalid(err)
		}
		all.Loaded = append(all.Loaded, out.Loaded...)
		all.Problems = append(all.Problems, out.Problems...)
	}
	return a.showLoaded(all, paths[0])
}

// sendFiles is load for a server that cannot read our files. A project may have either of
// the two folders, so a missing one is not an error.
func (a *app) sendFiles(ctx context.Context, s *session, paths []string) error {
	all := loaded{Loaded: []saved{}}
	for _, path := range paths {
		files := []string{path}
		if isDir(path) {
			files = a.definitionFiles(path)
		}
		for _, file := range files {
			out, err := a.send(ctx, s, file)
			switch {
			case err == nil:
				all.Loaded = append(all.Loaded, out)
			case errors.Is(err, os.ErrNotExist):
			case abi.CodeOf(err) == abi.BadFields || errors.As(err, new(sentinels.Problems)):
				all.Problems = append(all.Problems, problemFile{a.relative(file), err.Error()})
			default:
				return err
			}
		}
	}
	return a.showLoaded(all, paths[0])
}

// send stores the definition of one file in the server. The same text again is
// the same revision, so sending a folder twice changes nothing.
func (a *app) send(ctx context.Context, s *session, file string) (out saved, err error) {
	src, err := readFile(a.relative(file), file)
	if err != nil {
		return out, err
	}
	params := map[string]any{}
	undo, err := a.give(s, src, params)
	if err != nil {
		return out, err
	}
	defer undo()
	return out, ofFile(s.call(ctx, "sentinel/create", params, &out), src)
}

// showLoaded prints what was stored and what was not.
func (a *app) showLoaded(all loaded, first string) error {
	if a.flags.output != asTable {
		if err := a.writeJSON(all); err != nil {
			return err
		}
	} else if len(all.Loaded) > 0 {
		rows := []row{head(a.paintOut, "SENTINEL", "REVISION", "NAME")}
		for _, l := range all.Loaded {
			rows = append(rows, row{escaped(l.SentinelID), number(l.Revision), clip(l.Name, 60)})
		}
		if err := a.table(rows); err != nil {
			return err
		}
	}
	for _, p := range all.Problems {
		a.note("%s\n", block(p.Problem))
	}
	if len(all.Problems) > 0 {
		a.complain(plural(len(all.Problems), "file is", "files are")+" not loaded", "")
		return exitError(ExitInvalid)
	}
	if len(all.Loaded) == 0 {
		a.say("no definitions to load in %s", a.relative(first))
	}
	return nil
}
