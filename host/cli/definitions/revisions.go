package definitions

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// revised is the result of sentinel/revisions.
type revised struct {
	SentinelID sentinels.ID `json:"sentinelId"`
	Revisions  []struct {
		Revision int       `json:"revision"`
		Name     string    `json:"name,omitempty"`
		Hash     string    `json:"hash,omitempty"`
		SavedAt  time.Time `json:"savedAt"`
		Origin   string    `json:"origin,omitempty"`
		By       string    `json:"by,omitempty"`
		Note     string    `json:"note,omitempty"`
		Deleted  bool      `json:"deleted,omitempty"`
	} `json:"revisions"` // the newest first
}

// revisionsCommand also shows those of a deleted sentinel, to restore one of them.
func (a verbs) revisionsCommand() *cobra.Command {
	var limit int
	c := &cobra.Command{
		Use: "revisions NAME", Short: "List the revisions of a sentinel: when, by whom, why",
		Example: "  sentinel revisions nightly",
		Args:    app.ExactArgs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if limit < 0 {
				return app.NewUsageError(fmt.Sprintf("--limit %d is below 0", limit), "")
			}
			params := map[string]any{}
			if limit > 0 {
				params["limit"] = limit
			}
			s, err := a.Connect(cmd.Context(), true)
			if err != nil {
				return err
			}
			defer a.CloseSession(s, &err)
			return a.revisions(cmd.Context(), s, args[0], params)
		},
	}
	c.Flags().IntVar(&limit, "limit", 0, "only the newest so many (default: all)")
	return c
}

// revisions shows the result of the command. In jsonl it is a revision a line, the
// newest first, as it is in every form.
func (a verbs) revisions(ctx context.Context, s *app.Session, name string, params map[string]any) error {
	var out revised
	if err := a.CallStored(ctx, s, name, "sentinel/revisions", params, &out); err != nil {
		return err
	}
	if done, err := app.WriteItems(a.App, out, out.Revisions); done {
		return err
	}
	p := a.PaintOut
	rows := []output.Row{output.Head(p, "REVISION", "SAVED", "BY", "WHY")}
	for _, r := range out.Revisions {
		// Who wrote no note may at least have a file.
		why := output.Clip(r.Note, 80)
		switch {
		case r.Deleted:
			why = p.Bad("deleted") + " " + why
		case why == "" && r.Origin != "":
			why = p.Dim("from " + output.Clip(a.Relative(r.Origin), 75))
		}
		rows = append(rows, output.Row{output.Number(r.Revision), output.LocalTime(r.SavedAt), output.Clip(r.By, 40), why})
	}
	return a.Table(rows)
}

// showCommand writes a definition as it is stored, for a file or another program.
// It is JSON in every format: `sentinel show X 3 >x.json` is a definition again.
func (a verbs) showCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show NAME [REVISION]", Short: "Write the definition of a sentinel, the newest or an earlier one",
		Example: "  sentinel show nightly\n  sentinel show nightly 2 > nightly.json",

		Args: app.RangeArgs(1, 2, "NAME"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			command, params := "sentinel/export", map[string]any{}
			if len(args) > 1 {
				n, err := revisionNumber(args[1])
				if err != nil {
					return err
				}
				command, params["revision"] = "sentinel/revision", n
			}
			s, err := a.Connect(cmd.Context(), true)
			if err != nil {
				return err
			}
			defer a.CloseSession(s, &err)
			var out struct {
				Deleted    bool            `json:"deleted"`
				Definition json.RawMessage `json:"definition"`
			}
			if err := a.CallStored(cmd.Context(), s, args[0], command, params, &out); err != nil {
				return err
			}
			if out.Deleted { // such a revision has no text
				return app.NotFound("", "with revision %s sentinel %q was deleted", args[1], args[0])
			}
			return a.WriteJSON(out.Definition)
		},
	}
}
