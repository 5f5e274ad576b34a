package definitions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/internal/atomicfile"
	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
)

// exportCommand writes a definition, which can be a file of another project, or with
// --all or --history a bundle, which only import reads.
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
			// The whole text first, so that an error leaves no part of a file.
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
	c.Flags().BoolVar(&force, "force", false, "replace an existing file")
	return c
}

// export returns the text of a sentinel's definition or of a bundle, in every output
// format. word "" means all sentinels.
func (a verbs) export(ctx context.Context, word string, history bool) (text []byte, err error) {
	s, err := a.Connect(ctx, true)
	if err != nil {
		return nil, err
	}
	defer a.CloseSession(s, &err)
	params := map[string]any{}
	if word == "" {
		params["all"] = true
	} else if params["sentinelId"], err = a.FindTarget(ctx, s, word); err != nil {
		return nil, err
	}
	if history {
		params["history"] = true
	}
	var out struct {
		Definition json.RawMessage `json:"definition"`
		Bundle     json.RawMessage `json:"bundle"`
	}
	if err := s.Call(ctx, "sentinel/export", params, &out); err != nil {
		return nil, err
	}
	content := out.Definition
	if out.Bundle != nil {
		content = out.Bundle
	}
	if text, err = json.MarshalIndent(content, "", "  "); err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	return termtext.JSON(append(text, '\n')), nil // < stays <
}

// writeNew creates a file. With force it replaces an existing one atomically.
func (a verbs) writeNew(name string, text []byte, force bool) error {
	path := a.Path(name)
	return a.WriteProjectFile(filepath.Dir(path), func() (string, error) {
		if force {
			return filepath.Base(path), atomicfile.Replace(path, text, 0o644) // definitions are not secret and are committed to repositories
		}
		return filepath.Base(path), createFile(path, name, text)
	})
}

// createFile creates a file that does not exist. name is how the user called it.
func createFile(path, name string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		return app.NewUsageError(fmt.Sprintf("file %q already exists", name), "--force replaces it")
	}
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}
