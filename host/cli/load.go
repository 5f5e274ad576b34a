package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
)

// loadCommand takes a project's sentinels into the store, both folders that there
// may be.
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
			return a.load(cmd.Context(), s, paths, len(args) > 0)
		},
	}
}

// loaded is what sentinel/load answers.
type loaded struct {
	Loaded   []saved `json:"loaded"`
	Problems []struct {
		File    string `json:"file"`
		Problem string `json:"problem"`
	} `json:"problems,omitempty"`
}

// load loads path by path. A file that is no definition keeps out itself alone, but
// the exit code says that one was.
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
	if a.flags.output != asTable {
		if err := a.writeJSON(all); err != nil {
			return err
		}
	} else if len(all.Loaded) > 0 {
		rows := [][]string{head(a.paintOut, "SENTINEL", "REVISION", "NAME")}
		for _, l := range all.Loaded {
			rows = append(rows, []string{string(l.SentinelID), strconv.Itoa(l.Revision), clip(l.Name, 60)})
		}
		if err := table(a.env.Stdout, rows); err != nil {
			return err
		}
	}
	for _, p := range all.Problems {
		fmt.Fprintln(a.env.Stderr, printable(p.Problem))
	}
	if len(all.Problems) > 0 {
		a.complain(plural(len(all.Problems), "file is", "files are")+" not loaded", "")
		return exitError(ExitInvalid)
	}
	if len(all.Loaded) == 0 {
		a.say("there is nothing to load in %s", a.relative(paths[0]))
	}
	return nil
}
