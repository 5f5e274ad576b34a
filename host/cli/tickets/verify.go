package tickets

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
)

// A verification is what the verbs show of one.
type verification struct {
	Status  string `json:"verification_status"`
	Attempt int    `json:"attempt"`
	Max     int    `json:"maxAttempts"`
	Checks  []struct {
		ID         string `json:"check_id"`
		Type       string `json:"type"`
		Status     string `json:"status"`
		Message    string `json:"message"`
		DurationMs int64  `json:"duration_ms"`
		Output     string `json:"output"`
	} `json:"checks"`
	Summary struct{ Total, Passed, Failed, Skipped int } `json:"summary"`
	Blocked *struct {
		Reason  string `json:"reason"`
		Message string `json:"message"`
		DelayMs int64  `json:"delayMs"`
	} `json:"blocked"`
	Escalated bool      `json:"escalated"`
	Branch    string    `json:"branch_name"`
	Commit    string    `json:"commit_sha"`
	Missing   []string  `json:"missing_confinement"`
	StartedAt time.Time `json:"started_at"`
}

func (a verbs) verify() *cobra.Command {
	var branch, repository, criteria, service string
	var history bool
	c := &cobra.Command{
		Use: "verify [TICKET]", Short: "Check acceptance criteria against a branch",
		Long: "The criteria of a ticket, or those of --criteria, are checked in a clone of the branch. Nothing passes that\n" +
			"was not executed. Exit codes: 0 passing, 1 failing, 8 blocked.",
		Example: "  sentinel verify T-1\n  sentinel verify --criteria @criteria.json --branch feature/login\n  sentinel verify T-1 --history",
		Args:    app.RangeArgs(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			raw, err := a.criteria(criteria)
			if err != nil {
				return err
			}
			params := map[string]any{}
			switch {
			case len(args) == 1 && raw != nil:
				return app.NewUsageError("a ticket has its own criteria", "leave out --criteria, or the ticket")
			case len(args) == 1:
				params["ticket_id"] = args[0]
			case raw == nil:
				return app.NewUsageError("want a ticket, or --criteria", "sentinel verify T-1")
			default:
				params["acceptance_criteria"] = raw
				if repository == "" {
					repository = a.Workspace()
				}
			}
			if history {
				return a.history(cmd, params)
			}
			if repository != "" {
				params["repo_url"] = repository
			}
			if branch != "" {
				params["branch_name"] = branch
			}
			if service != "" {
				params["service_url"] = service
			}
			var v verification
			answer, err := a.call(cmd.Context(), "verify/run", params, &v)
			if err != nil {
				return err
			}
			if a.Flags.Output != output.FormatTable {
				err = a.WriteJSON(answer)
			} else {
				err = a.showVerification(v)
			}
			if err != nil {
				return err
			}
			return verdictCode(v.Status)
		},
	}
	f := c.Flags()
	f.StringVar(&branch, "branch", "", "branch with the work (default: the ticket's, or what is checked out)")
	f.StringVar(&repository, "repo", "", "repository as a path, https or ssh URL (default: the ticket's, or the workspace)")
	f.StringVar(&criteria, "criteria", "", `without a ticket: {"checks": [...]} as JSON or @FILE`)
	f.StringVar(&service, "service-url", "", "where checks of type http_request go (default: setting verify.url)")
	f.BoolVar(&history, "history", false, "show the verifications of the ticket instead, newest first")
	return c
}

// verdictCode returns the exit code of a verdict.
func verdictCode(status string) error {
	switch status {
	case "passing":
		return nil
	case "failing":
		return app.ExitError(app.ExitFailed)
	}
	return app.ExitError(app.ExitWaiting)
}

func (a verbs) showVerification(v verification) error {
	p := a.PaintOut
	rows := []output.Row{}
	if len(v.Checks) > 0 {
		rows = append(rows, output.Head(p, "CHECK", "TYPE", "RESULT", "TIME", "MESSAGE"))
	}
	for _, c := range v.Checks {
		rows = append(rows, output.Row{
			output.Clip(c.ID, 40), output.Escape(c.Type), paint(p, c.Status), output.Escape((time.Duration(c.DurationMs) * time.Millisecond).String()), output.Clip(c.Message, 300),
		})
	}
	if err := a.Table(rows); err != nil {
		return err
	}
	for _, c := range v.Checks {
		if c.Status == "failed" && c.Output != "" {
			if err := a.Out.Printf("\n%s:\n%s\n", output.Clip(c.ID, 40), termtext.Block(c.Output, "  ")); err != nil {
				return err
			}
		}
	}
	line := fmt.Sprintf("%s: %d of %d checks passed", v.Status, v.Summary.Passed, v.Summary.Total)
	if v.Summary.Skipped > 0 {
		line += fmt.Sprintf(", %d skipped", v.Summary.Skipped)
	}
	if v.Commit != "" {
		line += fmt.Sprintf(" at %.12s", v.Commit)
	}
	if v.Attempt > 0 {
		line += fmt.Sprintf(", attempt %d/%d", v.Attempt, v.Max)
	}
	if err := a.Out.Printf("%s\n", output.Escape(line)); err != nil {
		return err
	}
	if b := v.Blocked; b != nil {
		a.Info("%s: %s", b.Reason, b.Message)
		if b.DelayMs > 0 {
			a.Info("no attempt is used; verify again in %s", time.Duration(b.DelayMs)*time.Millisecond)
		}
	}
	if v.Escalated {
		a.Info("the ticket is blocked: a person decides")
	}
	for _, text := range v.Missing {
		a.Info("commands were not fully confined: %s", text)
	}
	return nil
}

// paint colours the result of a check or verification.
func paint(p output.Palette, status string) termtext.Text {
	switch status {
	case "passed", "passing":
		return p.Good(output.Escape(status))
	case "failed", "failing":
		return p.Bad(output.Escape(status))
	}
	return p.Warn(output.Escape(status))
}

func (a verbs) history(cmd *cobra.Command, params map[string]any) error {
	if params["ticket_id"] == nil {
		return app.NewUsageError("--history wants a ticket", "sentinel verify T-1 --history")
	}
	var out struct {
		Verifications []json.RawMessage `json:"verifications"`
	}
	raw, err := a.call(cmd.Context(), "verify/history", params, &out)
	if err != nil {
		return err
	}
	if a.Flags.Output != output.FormatTable {
		return a.WriteJSON(raw)
	}
	if len(out.Verifications) == 0 {
		a.Info("the ticket was not verified yet")
		return nil
	}
	p := a.PaintOut
	rows := []output.Row{output.Head(p, "TIME", "RESULT", "PASSED", "BRANCH", "COMMIT", "REASON")}
	for _, text := range out.Verifications {
		var v verification
		if err := json.Unmarshal(text, &v); err != nil {
			return err
		}
		reason := ""
		if v.Blocked != nil {
			reason = v.Blocked.Message
		}
		for _, c := range v.Checks {
			if c.Status == "failed" && reason == "" {
				reason = c.ID + ": " + c.Message
			}
		}
		rows = append(rows, output.Row{
			output.LocalTime(v.StartedAt), paint(p, v.Status), output.Escape(fmt.Sprintf("%d/%d", v.Summary.Passed, v.Summary.Total)),
			output.Clip(v.Branch, 40), output.Clip(v.Commit, 12), output.Clip(reason, 120),
		})
	}
	return a.Table(rows)
}
