package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// validateCommand checks against the step types that are live here, those of
// --plugins too.
func (a *app) validateCommand() *cobra.Command {
	return &cobra.Command{
		Use: "validate FILE...", Short: "Check definitions and show every problem with its place",
		Args: between(1, -1, "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.validate(cmd.Context(), args) },
	}
}

// checked is what validate says of one file with -o json.
type checked struct {
	File     string             `json:"file"`
	Valid    bool               `json:"valid"`
	Sentinel sentinels.ID       `json:"sentinel,omitempty"`
	Problems sentinels.Problems `json:"problems"` // warnings too
}

// validate looks at every file before it says anything by its exit code. It needs
// no store and makes none.
func (a *app) validate(ctx context.Context, files []string) (err error) {
	var sources []*source
	for _, file := range files {
		src, err := a.findSource(file)
		if err != nil {
			return err
		}
		if src == nil {
			return notFound("", "no file %q", file)
		}
		sources = append(sources, src)
	}
	s, err := a.scratch(ctx)
	if err != nil {
		return err
	}
	defer a.closing(s, &err)
	bad := 0
	results := []checked{}
	for _, src := range sources {
		v, err := a.validation(ctx, s, src)
		if err != nil {
			return err
		}
		if !v.Valid {
			bad++
		}
		c := checked{File: src.file, Valid: v.Valid, Sentinel: v.Sentinel, Problems: v.Problems}
		results = append(results, c)
		if a.flags.output != asTable {
			continue
		}
		a.problems(c.Problems)
		if c.Valid {
			if err := a.out.printf("%s: %s  %s\n", src.file, a.paintOut.good("valid"), c.Sentinel); err != nil {
				return err
			}
		}
	}
	if err := a.showChecked(results); err != nil {
		return err
	}
	if bad > 0 {
		return exitError(ExitInvalid)
	}
	return nil
}

// showChecked writes what was found, in the JSON forms.
func (a *app) showChecked(results []checked) error {
	_, err := writeItems(a, results, results)
	return err
}

// schemaCommand writes the schema where an editor can be pointed at it.
func (a *app) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Write the JSON Schema of definitions, for an editor",
		Long:    "It holds the fields of every step type that is installed, those of --plugins too.",
		Example: "  sentinel schema > .sentinel/schema.json",
		Args:    exactly(),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			s, err := a.scratch(cmd.Context())
			if err != nil {
				return err
			}
			defer a.closing(s, &err)
			rt := s.process.Host().Runtime()
			return a.writeJSON(sentinels.Schema(rt.Types(), rt.DecodeOptions("").Triggers))
		},
	}
}
