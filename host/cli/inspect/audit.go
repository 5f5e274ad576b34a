package inspect

import (
	"cmp"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/audit"
	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
)

// auditCommand lists who changed what.
func (a verbs) auditCommand() *cobra.Command {
	var since, actor, event, before string
	var limit int
	c := &cobra.Command{
		Use: "audit", Short: "List who changed what, the newest first",
		Long: "Commands that change something, decisions, grants, tokens, and what was denied. Calls of steps are in\n" +
			"`sentinel trace`; those that change sentinels, plugins or tickets are here too, and so is what operators plan and do (operator:*).",
		Example: "  sentinel audit --since 2h\n  sentinel audit --actor agent:ci --event 'ticket/*'", Args: app.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			params := map[string]any{"limit": limit}
			from, err := a.sinceFlag(since)
			if err != nil {
				return err
			}
			if !from.IsZero() {
				params["since"] = from.UTC().Format(time.RFC3339Nano)
			}
			if actor != "" {
				params["actor"] = actor
			}
			if event != "" {
				params["event"] = event
			}
			if before != "" {
				params["before"] = before
			}
			s, err := a.Connect(cmd.Context(), true)
			if err != nil {
				return err
			}
			defer a.CloseSession(s, &err)
			var out struct {
				Entries []audit.Entry `json:"entries"`
				Next    string        `json:"next,omitempty"`
				Damaged int           `json:"damaged,omitempty"`
			}
			if err := s.Call(cmd.Context(), "audit/list", params, &out); err != nil {
				return err
			}
			if a.Flags.Output != output.FormatTable {
				return a.WriteJSON(out)
			}
			if out.Damaged > 0 {
				a.Info("%d lines are not entries", out.Damaged)
			}
			if len(out.Entries) == 0 {
				if len(params) > 1 {
					a.Info("nothing matches these flags")
				} else {
					a.Info("nothing is recorded")
				}
				return nil
			}
			rows := []output.Row{output.Head(a.PaintOut, "TIME", "ACTOR", "PROCESS", "EVENT", "OUTCOME", "DETAILS")}
			for _, e := range out.Entries {
				rows = append(rows, output.Row{output.Escape(e.Timestamp.Local().Format("2006-01-02 15:04:05")), output.Clip(e.Actor, 40), process(e), output.Escape(e.Event), outcome(e), output.Clip(string(e.Details), 100)})
			}
			if err := a.Table(rows); err != nil {
				return err
			}
			if out.Next != "" {
				a.Info("there are older entries: --cursor %s", out.Next)
			}
			return nil
		},
	}
	f := c.Flags()
	f.StringVar(&before, "cursor", "", "only older entries: the cursor that the last page ended with")
	f.StringVar(&since, "since", "", "only entries from then on: a duration such as 2h, yesterday, monday, a day or a time")
	f.StringVar(&actor, "actor", "", "only entries of this actor, such as user, ann or agent:ci")
	f.StringVar(&event, "event", "", "only this event; * matches a part, as in 'ticket/*'")
	f.IntVar(&limit, "limit", 100, "entries, at most 1000")
	return c
}

// process is the program that asked and its pid.
func process(e audit.Entry) termtext.Text {
	if e.PID == 0 {
		return output.Escape("-")
	}
	return output.Clip(fmt.Sprintf("%s %d", cmp.Or(e.Program, "?"), e.PID), 40)
}

// outcome is how it ended, and of repeated failures how many the entry stands for.
func outcome(e audit.Entry) termtext.Text {
	if e.Count > 0 {
		return output.Escape(fmt.Sprintf("%s, %d more", e.Outcome, e.Count))
	}
	return output.Escape(e.Outcome)
}
