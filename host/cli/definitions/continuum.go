package definitions

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/continuum"
)

// fromContinuum rewrites a definition of the original system and writes it beside the
// other definitions of the project. The file that was given stays as it is.
func (a verbs) fromContinuum(ctx context.Context, name string) (err error) {
	src, err := a.bundleFile(name)
	if err != nil {
		return err
	}
	text, changes, problems := continuum.Rewrite(src.Text, src.File)
	if len(problems) > 0 {
		return app.Invalid(problems)
	}
	id := sentinels.Slug(strings.TrimSuffix(filepath.Base(name), filepath.Ext(name)))
	file, err := a.writeSentinel(a.Workspace(), string(id), text, "rename the file that is imported")
	if err != nil {
		return err
	}
	s, err := a.Scratch(ctx)
	if err != nil {
		return err
	}
	defer a.CloseSession(s, &err)
	left, err := a.Validation(ctx, s, &app.Source{File: a.Relative(file), Path: file, Text: text})
	if err != nil {
		return err
	}
	if a.Flags.Output != output.FormatTable {
		list := []map[string]any{}
		for _, c := range changes {
			list = append(list, map[string]any{"line": c.Line, "path": c.Path, "from": c.From, "to": c.To})
		}
		return a.WriteJSON(map[string]any{"file": file, "sentinel": id, "changes": list, "valid": left.Valid, "problems": left.Problems})
	}
	if err := a.Out.Printf("%s\n", a.Relative(file)); err != nil {
		return err
	}
	for _, c := range changes {
		what := c.From + " is now " + c.To
		switch {
		case c.To == "":
			what = c.From + " removed"
		case c.From == "":
			what = c.To + " added"
		}
		a.Info("%s:%d: %s: %s", src.File, c.Line, c.Path, what)
	}
	a.ShowProblems(left.Problems)
	if !left.Valid {
		a.Info("%d changes; what is left has no form here and is to be changed in the file; next: sentinel validate %s", len(changes), a.Relative(file))
		return app.ExitError(app.ExitInvalid)
	}
	a.Info("%d changes; next: sentinel create %s", len(changes), a.Relative(file))
	return nil
}
