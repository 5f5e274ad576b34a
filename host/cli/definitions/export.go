package definitions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/internal/atomicfile"
	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
)

// exportCommand writes a sentinel for another project. Alone it is its definition,
// as a file of the other project's folder has it; with its history, or with all
// the others, it is a bundle, which only import reads.
func (a verbs) exportCommand() *cobra.Command {
	var all, history, force bool
	var file string
	c := &cobra.Command{
		Use: "export (NAME|RUN | --all)", Short: "Write a sentinel, or a bundle of them, for another project",
		Example: "  sentinel export build-fix -f build-fix.json\n  sentinel export --all --history | ssh elsewhere sentinel import -",
		Args:    app.RangeArgs(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) > 0) {
				return app.NewUsageError("export: give NAME, or --all", "usage: "+cmd.UseLine())
			}
			var word string
			if !all {
				word = args[0]
			}
			// All of it is in memory before the first byte is written, so that an error
			// leaves no half of a file. The engine bounds a bundle.
			text, err := a.export(cmd.Context(), word, history)
			if err != nil {
				return err
			}
			if file == "" || file == "-" {
				return a.Out.JSON(text)
			}
			return a.writeNew(file, text, force)
		},
	}
	c.Flags().BoolVar(&all, "all", false, "every stored sentinel, as a bundle")
	c.Flags().BoolVar(&history, "history", false, "with the revisions that are kept, as a bundle")
	c.Flags().StringVarP(&file, "file", "f", "", "file to write (default: standard output)")
	c.Flags().BoolVar(&force, "force", false, "replace the file if it is there")
	return c
}

// export returns the text of a sentinel's definition or of a bundle. word "" is
// all of them. It is text in every output format: what is exported is a file.
func (a verbs) export(ctx context.Context, word string, history bool) (text []byte, err error) {
	s, err := a.Connect(ctx, true)
	if err != nil {
		return nil, err
	}
	defer a.CloseSession(s, &err)
	params := map[string]any{}
	switch {
	case word == "": // the verb has seen to it that --all was meant
		params["all"] = true
	default:
		if params["sentinelId"], err = a.FindTarget(ctx, s, word); err != nil {
			return nil, err
		}
	}
	if history {
		params["history"] = true
	}
	var out struct {
		Definition json.RawMessage `json:"definition"`
		Format     int             `json:"format"`
		ExportedAt time.Time       `json:"exportedAt"`
		Sentinels  json.RawMessage `json:"sentinels"`
	}
	if err := s.Call(ctx, "sentinel/export", params, &out); err != nil {
		return nil, err
	}
	var v any = out.Definition
	if out.Format > 0 {
		// The answer says more; a bundle is these three and nothing else.
		v = struct {
			Format     int             `json:"format"`
			ExportedAt time.Time       `json:"exportedAt"`
			Sentinels  json.RawMessage `json:"sentinels"`
		}{out.Format, out.ExportedAt, out.Sentinels}
	}
	if text, err = json.MarshalIndent(v, "", "  "); err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	return termtext.JSON(append(text, '\n')), nil // also in a file: < stays <
}

// writeNew writes a file that is not there yet. With force it may be; then it is
// replaced as a whole, so that nobody reads half of it.
func (a verbs) writeNew(name string, text []byte, force bool) error {
	path := a.Path(name)
	if force {
		return atomicfile.Replace(path, text, 0o644) // a definition is no secret; it goes into repositories
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	// The file system decides, not a look before: two exports at once cannot both
	// think that there was no file.
	if errors.Is(err, os.ErrExist) {
		return app.NewUsageError(fmt.Sprintf("file %q is there already", name), "--force replaces it")
	}
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}
