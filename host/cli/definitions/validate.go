package definitions

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// validateCommand checks against the step types that are live here, those of
// --plugins too.
func (a verbs) validateCommand() *cobra.Command {
	var strict bool
	c := &cobra.Command{
		Use: "validate FILE|DIR...", Short: "Check definitions and show every problem with its place",
		Long:    "Of a folder, the definitions in it are checked; of a project, those in its .sentinel/sentinels.",
		Example: "  sentinel validate nightly.json\n  sentinel validate .",

		Args: app.RangeArgs(1, -1, "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.validate(cmd.Context(), args, strict) },
	}
	c.Flags().BoolVar(&strict, "strict", false, "a definition with warnings is not valid")
	return c
}

// definitionsBelow lists the files of definitions in a folder, or in that of the project which it is.
func (a verbs) definitionsBelow(dir string) []string {
	if own := filepath.Join(dir, ".sentinel", "sentinels"); app.IsDir(own) {
		dir = own
	}
	files := a.DefinitionFiles(dir)
	for i, file := range files {
		files[i] = a.Relative(file)
	}
	return files
}

// checked is the result of validate for one file with -o json.
type checked struct {
	File     string             `json:"file"`
	Valid    bool               `json:"valid"`
	Sentinel sentinels.ID       `json:"sentinel,omitempty"`
	Problems sentinels.Problems `json:"problems"` // warnings too
}

// validate checks every file before it returns the exit code. It makes no store.
func (a verbs) validate(ctx context.Context, files []string, strict bool) (err error) {
	var sources []*app.Source
	refs := map[*app.Source]sentinels.Problems{}
	for len(files) > 0 {
		file := files[0]
		files = files[1:]
		src, err := a.ReadSource(file)
		if dir := a.Path(file); (err != nil || src == nil) && app.IsDir(dir) {
			within := a.definitionsBelow(dir)
			if len(within) == 0 {
				return app.NotFound("`sentinel init` writes one", "no definitions in %q", file)
			}
			files = append(within, files...)
			continue
		}
		var bad sentinels.Problems
		if errors.As(err, &bad) && src != nil {
			refs[src], err = bad, nil
		}
		if err != nil {
			return err
		}
		if src == nil {
			return app.NotFound(a.FileHint(file), "no definition %q", file)
		}
		sources = append(sources, src)
	}
	s, broken, err := a.checkSession(ctx)
	if err != nil {
		return err
	}
	defer a.CloseSession(s, &err)
	bad := 0
	results := []checked{}
	duplicates := a.Duplicates()
	for _, src := range sources {
		v, err := a.ValidationBeside(ctx, s, src, refs[src])
		if err != nil {
			return err
		}
		for _, p := range duplicates {
			if a.Path(p.File) == a.Path(src.File) {
				p.File, v.Valid = src.File, false
				v.Problems = append(v.Problems, p)
			}
		}
		if strict && len(v.Problems) > 0 {
			v.Valid = false
		}
		if !v.Valid {
			bad++
		}
		c := checked{File: src.File, Valid: v.Valid, Sentinel: v.Sentinel, Problems: v.Problems}
		results = append(results, c)
		if a.Flags.Output != output.FormatTable {
			continue
		}
		a.ShowProblems(c.Problems)
		if c.Valid {
			if err := a.Out.Printf("%s: %s  %s\n", src.File, a.PaintOut.Good("valid"), c.Sentinel); err != nil {
				return err
			}
		}
	}
	if err := a.showChecked(results); err != nil {
		return err
	}
	if broken != nil { // the problems of definitions are shown all the same
		return broken
	}
	if bad > 0 {
		return app.ExitError(app.ExitInvalid)
	}
	return nil
}

// checkSession returns a session that knows the stored sentinels, which definitions refer
// to, or one without them if the store cannot be used. config is why the configuration
// is invalid.
func (a verbs) checkSession(ctx context.Context) (s *app.Session, config, err error) {
	if a.Flags.Plugins == "" { // another process has others
		if s, err = a.Connect(ctx, true); err == nil {
			return s, nil, nil
		}
	}
	return a.ScratchAnyway(ctx)
}

// showChecked writes what was found, in the JSON forms.
func (a verbs) showChecked(results []checked) error {
	_, err := app.WriteItems(a.App, results, results)
	return err
}
