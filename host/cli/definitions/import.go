package definitions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// maxImport is the maximum size in bytes of what is read. The limit of sentinel/import is
// lower, so that its error is reported.
const maxImport = 65 << 20

// imported is the result of sentinel/import, with the sentinels in the order of the
// bundle.
type imported struct {
	Imported []struct {
		SentinelID sentinels.ID `json:"sentinelId"`
		Name       string       `json:"name"`
		Revision   int          `json:"revision"`
		Hash       string       `json:"hash"`
		Change     string       `json:"change"` // created, updated, unchanged
		Revisions  int          `json:"revisions"`
		Note       string       `json:"note,omitempty"`
		Warning    string       `json:"warning,omitempty"`
	} `json:"imported"`
	Notes []string `json:"notes,omitempty"` // about plugins
}

// importCommand imports all of a bundle, or nothing.
func (a verbs) importCommand() *cobra.Command {
	var overwrite, original bool
	var rename []string
	c := &cobra.Command{
		Use: "import FILE|-", Short: "Store what export wrote: a definition, or a bundle of them",
		Long:    "If another sentinel with the same id is stored here, --overwrite or --rename is needed.",
		Example: "  sentinel import bundle.json\n  sentinel import build-fix.json --rename build-fix=build-fix-2\n  sentinel import --from-continuum pipeline.json",
		Args:    app.ExactArgs("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if original {
				if overwrite || len(rename) > 0 {
					return app.NewUsageError("--from-continuum writes a file: --overwrite and --rename are for the store", "")
				}
				return a.fromContinuum(cmd.Context(), args[0])
			}
			params := map[string]any{}
			if overwrite {
				params["overwrite"] = true
			}
			if err := renamed(params, rename); err != nil {
				return err
			}
			return a.take(cmd.Context(), args[0], params)
		},
	}
	c.Flags().BoolVar(&overwrite, "overwrite", false, "replace other sentinels with these ids, by a new revision")
	c.Flags().BoolVar(&original, "from-continuum", false, "rewrite a definition of the original system, with {{...}} references, into .sentinel/sentinels, and say what changed")
	c.Flags().StringArrayVar(&rename, "rename", nil, "OLD=NEW: another id; references among the imported follow; repeatable")
	return c
}

// renamed reads --rename; NEW alone is for a file with one sentinel.
func renamed(params map[string]any, pairs []string) error {
	names := map[string]string{}
	for _, pair := range pairs {
		old, id, two := strings.Cut(pair, "=")
		switch {
		// The old id is in the file, which is not read yet.
		case !two && len(pairs) == 1 && pair != "":
			params["rename"] = pair
			return nil
		case !two || old == "" || id == "":
			return app.NewUsageError(fmt.Sprintf("invalid --rename %q: want OLD=NEW", pair), "")
		}
		names[old] = id
	}
	if len(names) > 0 {
		params["rename"] = names
	}
	return nil
}

// take imports a file or standard input. Definitions are checked with the step types of
// the host that imports them, which reports all problems at once.
func (a verbs) take(ctx context.Context, name string, params map[string]any) (err error) {
	src, err := a.bundleFile(name)
	if err != nil {
		return err
	}
	s, err := a.Connect(ctx, false)
	if err != nil {
		return err
	}
	defer a.CloseSession(s, &err)
	var probe struct {
		Sentinels json.RawMessage `json:"sentinels"`
	}
	// A remote server cannot read our file, so the bundle itself is sent.
	if s.ByURL && strictjson.DecodeOpen(src.Text, &probe, strictjson.Unlimited()) == nil && probe.Sentinels != nil {
		params["bundle"] = json.RawMessage(src.Text)
	} else {
		undo, err := a.give(s, src, params)
		if err != nil {
			return err
		}
		defer undo()
	}
	var out imported
	if err := s.Call(ctx, "sentinel/import", params, &out); err != nil {
		return app.NameFile(app.Invalid(err), src)
	}
	return a.showImported(out)
}

// bundleFile reads the file to import.
func (a verbs) bundleFile(name string) (*app.Source, error) {
	in, src := a.Env.Stdin, &app.Source{File: "-"}
	if name != "-" {
		path := a.Path(name)
		f, err := app.OpenFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, app.NotFound("", "no file %q", name)
		}
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in, src.File, src.Path = f, name, path
	}
	// Longer text is cut and then rejected for its size.
	text, err := io.ReadAll(io.LimitReader(in, maxImport))
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", name, err)
	}
	src.Text = text
	return src, nil
}

// showImported prints the change of each sentinel.
func (a verbs) showImported(out imported) error {
	for _, d := range out.Imported {
		if d.Warning != "" {
			a.Warn(d.Warning)
		}
	}
	if a.Flags.Output != output.FormatTable {
		return a.WriteJSON(out)
	}
	rows := []output.Row{output.Head(a.PaintOut, "SENTINEL", "REVISION", "CHANGE", "")}
	for _, d := range out.Imported {
		note := output.Clip(d.Note, 80)
		if d.Revisions > 1 {
			note = output.Escape(output.Plural(d.Revisions, "revision", "revisions"))
		}
		rows = append(rows, output.Row{output.Escape(d.SentinelID), termtext.Sprintf("%d", d.Revision), output.Escape(d.Change), a.PaintOut.Dim(note)})
	}
	if err := a.Table(rows); err != nil {
		return err
	}
	for _, n := range out.Notes {
		a.Info("%s", n)
	}
	return nil
}
