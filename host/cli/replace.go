package cli

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// updateCommand puts another definition in the place of one that is there;
// create also makes new ones, so only this one can notice a mistyped name. With
// --revision two people who edit the same sentinel cannot undo each other.
func (a *app) updateCommand() *cobra.Command {
	var id, note string
	var revision int
	c := &cobra.Command{
		Use: "update FILE|-", Short: "Put another definition in the place of a stored sentinel's",
		Long:    "Runs that are on go on with it from their next iteration, unless they are pinned.",
		Example: "  sentinel update build-fix.json --note 'check with vet too'\n  sentinel update - --name build-fix <build-fix.json",
		Args:    exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			src, err := a.definitionFile(args[0])
			if err != nil {
				return err
			}
			if id == "" {
				// The step types are for whoever has the store to know.
				def, problems := decodeAnyStep(src)
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
func (a *app) update(ctx context.Context, id string, src *source, params map[string]any) (err error) {
	s, err := a.connect(ctx, false)
	if err != nil {
		return err
	}
	defer a.closing(s, &err)
	if err := a.validateWith(ctx, s, src); err != nil {
		return err
	}
	params["definition"] = string(src.text)
	params["sentinelId"] = id
	var out edited
	if err := s.Call(ctx, "sentinel/update", params, &out); err != nil {
		return ofFile(invalid(err), src)
	}
	return a.showEdit(ctx, s, out)
}

// deleteCommand asks nothing: rollback takes it back. Runs are not stopped: what
// they do may be worth its end, and stop is there for them.
func (a *app) deleteCommand() *cobra.Command {
	var note string
	var revision int
	c := &cobra.Command{
		Use: "delete NAME", Short: "Delete a stored sentinel; its runs go on, its revisions stay", Args: exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			params := map[string]any{"sentinelId": args[0]}
			if note != "" {
				params["note"] = note
			}
			if revision > 0 {
				params["revision"] = revision
			}
			s, err := a.connect(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer a.closing(s, &err)
			var raw json.RawMessage // handed on to programs with everything it says
			if err := s.Call(cmd.Context(), "sentinel/delete", params, &raw); err != nil {
				return err
			}
			return a.deleted(raw)
		},
	}
	c.Flags().StringVar(&note, "note", "", "why, for the history")
	c.Flags().IntVar(&revision, "revision", 0, "revision that was last seen; another one by now is refused")
	return c
}

// deleted says what is left of a sentinel, and how to have it back.
func (a *app) deleted(raw json.RawMessage) error {
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
		a.warn(out.Warning)
	}
	if a.flags.output != asTable {
		return a.writeJSON(raw)
	}
	if err := a.out.printf("%s  deleted with revision %d\n", out.SentinelID, out.Revision); err != nil {
		return err
	}
	if out.Runs > 0 {
		a.say("%s of it go on with what they have", plural(out.Runs, "run", "runs"))
	}
	a.say("`sentinel rollback%s %s %d` brings it back", a.sameStore(), quoted(string(out.SentinelID)), out.Revision-1)
	return nil
}

// rollbackCommand makes a new revision of an old one, so nothing gets lost by it.
// The name is taken as it is, since a deleted sentinel is in no list.
func (a *app) rollbackCommand() *cobra.Command {
	var note string
	c := &cobra.Command{
		Use: "rollback NAME REVISION", Short: "Bring back the content of an earlier revision, as a new one",
		Args: exactly("NAME", "REVISION"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			n, err := revisionNumber(args[1])
			if err != nil {
				return err
			}
			params := map[string]any{"sentinelId": args[0], "to": n}
			if note != "" {
				params["note"] = note
			}
			s, err := a.connect(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer a.closing(s, &err)
			var out edited
			if err := s.Call(cmd.Context(), "sentinel/rollback", params, &out); err != nil {
				return invalid(err)
			}
			return a.showEdit(cmd.Context(), s, out)
		},
	}
	c.Flags().StringVar(&note, "note", "", "why, for the history")
	return c
}
