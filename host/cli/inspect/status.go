package inspect

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// statusCommand accepts a sentinel's name too, which means its newest run.
func (a verbs) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use: "status [RUN|NAME]", Short: "Show the state of a run, or of the newest run of a sentinel",
		Long: "Without an argument: every run that is not over.",
		Args: app.RangeArgs(0, 1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			s, err := a.Connect(cmd.Context(), true)
			if err != nil {
				return err
			}
			defer a.CloseSession(s, &err)
			if len(args) == 0 {
				return a.openRuns(cmd.Context(), s)
			}
			return a.statusOf(cmd.Context(), s, args[0])
		},
	}
}

// statusOf shows a run and, where a sentinel was named, its triggers. One that
// has triggers need not have had a run.
func (a verbs) statusOf(ctx context.Context, s *app.Session, word string) error {
	info, err := a.FindRun(ctx, s, word, true)
	if err != nil && abi.CodeOf(err) != abi.NotFound {
		return err
	}
	var list []runtime.TriggerInfo
	if a.Stored(ctx, s, word) {
		var failed error
		if list, failed = a.triggersOf(ctx, s, sentinels.ID(word)); failed != nil {
			return failed
		}
	}
	switch {
	case err != nil && len(list) == 0:
		return err
	case err != nil && a.Flags.Output != output.FormatTable:
		return a.WriteJSON(map[string]any{"sentinel": word, "status": "idle", "triggers": list})
	case err == nil:
		if err := a.showRun(info); err != nil || len(list) == 0 || a.Flags.Output != output.FormatTable {
			return err
		}
		if err := a.Out.Write("\n"); err != nil {
			return err
		}
	default:
		a.Info("sentinel %q has no run", word)
	}
	return a.showTriggers(s, list)
}

// openRuns shows the runs that have not ended.
func (a verbs) openRuns(ctx context.Context, s *app.Session) error {
	var all app.Listed
	if err := s.Call(ctx, "sentinel/list", map[string]any{"limit": 1000}, &all); err != nil {
		return err
	}
	runs := []runtime.RunInfo{}
	for _, r := range all.Runs {
		if !r.Status.Final() {
			runs = append(runs, r)
		}
	}
	if done, err := app.WriteItems(a.App, runs, runs); done {
		return err
	}
	if len(runs) == 0 {
		a.Info("no active run")
		return nil
	}
	return a.showRuns(runs)
}

// showRun writes one run's summary.
func (a verbs) showRun(r runtime.RunInfo) error {
	if a.Flags.Output != output.FormatTable {
		return a.WriteJSON(r)
	}
	p := a.PaintOut
	rows := []output.Row{
		{p.Dim("run"), output.Escape(r.ID)},
		{p.Dim("sentinel"), output.Escape(r.Sentinel)},
		{p.Dim("status"), output.Status(p, r.Status)},
	}
	add := func(name termtext.Text, value string) {
		if value != "" {
			rows = append(rows, output.Row{p.Dim(name), output.Escape(value)})
		}
	}
	add("why", reason(r))
	add("reason", r.Limit)
	add("failed at", r.Step)
	for _, w := range r.Retries {
		rows = append(rows, output.Row{p.Dim("next attempt"), a.nextAttempt(w)})
	}
	add("iteration", fmt.Sprint(r.Iteration))
	if r.Revision > 0 {
		add("revision", fmt.Sprint(r.Revision))
	}
	add("active time", string(output.Duration(time.Duration(r.Elapsed)*time.Millisecond)))
	add("spent", string(output.Spent(r.Usage)))
	add("workspace", r.Workspace)
	add("parent", string(r.Parent))
	add("started", r.CreatedAt.Local().Format(time.DateTime))
	if !r.EndedAt.IsZero() {
		add("ended", r.EndedAt.Local().Format(time.DateTime))
	}
	if err := a.Table(rows); err != nil {
		return err
	}
	for _, w := range a.PendingActions([]runtime.RunInfo{r}) {
		a.Info("%s", w.Prompt)
		a.Hint(w.Type)
	}
	if len(r.Decisions) == 0 && !r.Live && !r.Status.Final() && r.Limit == "" {
		a.Hint(fmt.Sprintf("sentinel run%s --resume %s", a.SameStore(), r.ID))
	}
	return nil
}

// nextAttempt describes until when a step waits, and why.
func (a verbs) nextAttempt(w runtime.RetryWait) termtext.Text {
	text := termtext.Sprintf("step %s at %s", w.Step, w.At.Local().Format(time.DateTime))
	if wait := w.At.Sub(a.Env.Now()); wait > 0 {
		text += termtext.Sprintf(", in %s", output.Duration(wait.Round(time.Second)))
	}
	if w.Error != nil {
		text += termtext.Sprintf("; attempt %d failed: %s", w.Attempt, output.Clip(w.Error.Message, 200))
	}
	return text
}
