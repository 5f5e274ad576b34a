package definitions

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// updateCommand puts another definition in the place of one that is there;
// create also makes new ones, so only this one can notice a mistyped name. With
// --revision two people who edit the same sentinel cannot undo each other.
func (a verbs) updateCommand() *cobra.Command {
	var id, note string
	var revision int
	c := &cobra.Command{
		Use: "update FILE|-", Short: "Put another definition in the place of a stored sentinel's",
		Long:    "Active runs use it from their next iteration, unless they are pinned.",
		Example: "  sentinel update build-fix.json --note 'check with vet too'\n  sentinel update - --name build-fix <build-fix.json",
		Args:    app.ExactArgs("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			src, err := a.definitionFile(args[0])
			if err != nil {
				return err
			}
			if id == "" {
				// Only the engine knows the step types.
				def, problems := app.DecodeAnyStep(src)
				if err := problems.Err(); err != nil {
					return err
				}
				id = string(def.ID)
			}
			params := map[string]any{}
			if note != "" {
				params["note"] = note
			}
			if revision > 0 {
				params["revision"] = revision
			}
			return a.update(cmd.Context(), id, src, params)
		},
	}
	c.Flags().StringVar(&id, "name", "", "the sentinel, if the file does not name it")
	c.Flags().StringVar(&note, "note", "", "why, for the history")
	c.Flags().IntVar(&revision, "revision", 0, "revision the edit was made on; another one by now is refused")
	return c
}

// update stores the definition of src as the newest revision of the sentinel id.
// params may hold a note and the revision that is expected.
func (a verbs) update(ctx context.Context, id string, src *app.Source, params map[string]any) (err error) {
	s, err := a.Connect(ctx, false)
	if err != nil {
		return err
	}
	defer a.CloseSession(s, &err)
	if err := a.ValidateEdit(ctx, s, src); err != nil {
		return err
	}
	params["definition"] = string(src.Text)
	params["sentinelId"] = id
	var out edited
	if err := s.Call(ctx, "sentinel/update", params, &out); err != nil {
		return app.NameFile(app.Invalid(err), src)
	}
	out.shown = true
	return a.showEdit(ctx, s, out)
}

// deleteCommand asks nothing: rollback takes it back. Runs are not stopped: what
// they do may be worth its end, and stop is there for them.
func (a verbs) deleteCommand() *cobra.Command {
	var note string
	var revision int
	c := &cobra.Command{
		Use: "delete NAME", Short: "Delete a stored sentinel; its runs go on, its revisions stay",
		Example: "  sentinel delete nightly",
		Args:    app.ExactArgs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			params := map[string]any{}
			if note != "" {
				params["note"] = note
			}
			if revision > 0 {
				params["revision"] = revision
			}
			s, err := a.Connect(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer a.CloseSession(s, &err)
			var raw json.RawMessage // printed unchanged for programs
			if err := a.CallStored(cmd.Context(), s, args[0], "sentinel/delete", params, &raw); err != nil {
				return err
			}
			return a.deleted(raw)
		},
	}
	c.Flags().StringVar(&note, "note", "", "why, for the history")
	c.Flags().IntVar(&revision, "revision", 0, "revision that was last seen; another one by now is refused")
	return c
}

// deleted prints what is left of a sentinel, and how to restore it.
func (a verbs) deleted(raw json.RawMessage) error {
	var out struct {
		SentinelID sentinels.ID `json:"sentinelId"`
		Revision   int          `json:"revision"`
		Runs       int          `json:"runs"`
		Warning    string       `json:"warning"`
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		return fmt.Errorf("read what was deleted: %w", err)
	}
	if out.Warning != "" {
		a.Warn(out.Warning)
	}
	if a.Flags.Output != output.FormatTable {
		return a.WriteJSON(raw)
	}
	if err := a.Out.Printf("%s  deleted with revision %d\n", out.SentinelID, out.Revision); err != nil {
		return err
	}
	if out.Runs > 0 {
		a.Info("%s of it go on with what they have", output.Plural(out.Runs, "run", "runs"))
	}
	a.Info("`sentinel rollback%s %s %d` brings it back", a.SameStore(), output.Quote(string(out.SentinelID)), out.Revision-1)
	return nil
}

// rollbackCommand makes a new revision of an old one, so nothing gets lost by it.
// The name is used as it is, because a deleted sentinel is in no list.
func (a verbs) rollbackCommand() *cobra.Command {
	var note string
	c := &cobra.Command{
		Use: "rollback NAME REVISION", Short: "Restore the content of an earlier revision, as a new one",
		Example: "  sentinel rollback nightly 2",

		Args: app.ExactArgs("NAME", "REVISION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := revisionNumber(args[1])
			if err != nil {
				return err
			}
			params := map[string]any{"to": n}
			if note != "" {
				params["note"] = note
			}
			return a.revising(cmd.Context(), args[0], "sentinel/rollback", params)
		},
	}
	c.Flags().StringVar(&note, "note", "", "why, for the history")
	return c
}
