package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// statusCommand takes a sentinel's name too: its newest run is what is meant.
func (a *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use: "status [RUN|NAME]", Short: "Show where a run, or the newest run of a sentinel, stands",
		Long: "Without an argument: every run that is not over.",
		Args: between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			s, err := a.connect(cmd.Context(), true)
			if err != nil {
				return err
			}
			defer a.closing(s, &err)
			if len(args) == 0 {
				return a.openRuns(cmd.Context(), s)
			}
			return a.statusOf(cmd.Context(), s, args[0])
		},
	}
}

// statusOf shows a run and, where a sentinel was named, its triggers. One that
// has triggers need not have had a run.
func (a *app) statusOf(ctx context.Context, s *session, word string) error {
	info, err := a.target(ctx, s, word, true)
	if err != nil && abi.CodeOf(err) != abi.NotFound {
		return err
	}
	var list []runtime.TriggerInfo
	if a.stored(ctx, s, word) {
		var failed error
		if list, failed = a.triggersOf(ctx, s, sentinels.ID(word)); failed != nil {
			return failed
		}
	}
	switch {
	case err != nil && len(list) == 0:
		return err
	case err != nil && a.flags.output != asTable:
		return a.writeJSON(map[string]any{"sentinel": word, "status": "idle", "triggers": list})
	case err == nil:
		if err := a.showRun(info); err != nil || len(list) == 0 || a.flags.output != asTable {
			return err
		}
		if err := a.out.write("\n"); err != nil {
			return err
		}
	default:
		a.say("sentinel %q has no run", word)
	}
	return a.showTriggers(s, list)
}

// openRuns shows what is on, or could be again.
func (a *app) openRuns(ctx context.Context, s *session) error {
	var all listed
	if err := s.Call(ctx, "sentinel/list", map[string]any{"limit": 1000}, &all); err != nil {
		return err
	}
	runs := []runtime.RunInfo{}
	for _, r := range all.Runs {
		if !r.Status.Final() {
			runs = append(runs, r)
		}
	}
	if done, err := writeItems(a, runs, runs); done {
		return err
	}
	if len(runs) == 0 {
		a.say("no run is on")
		return nil
	}
	return a.showRuns(runs)
}

// showRun writes one run's summary.
func (a *app) showRun(r runtime.RunInfo) error {
	if a.flags.output != asTable {
		return a.writeJSON(r)
	}
	p := a.paintOut
	rows := []row{
		{p.dim("run"), escaped(r.ID)},
		{p.dim("sentinel"), escaped(r.Sentinel)},
		{p.dim("status"), statusText(p, r.Status)},
	}
	add := func(name termtext.Text, value string) {
		if value != "" {
			rows = append(rows, row{p.dim(name), escaped(value)})
		}
	}
	add("why", reason(r))
	add("limit", r.Limit)
	add("failed at", r.Step)
	for _, w := range r.Retries {
		rows = append(rows, row{p.dim("next attempt"), a.nextAttempt(w)})
	}
	add("iteration", fmt.Sprint(r.Iteration))
	if r.Revision > 0 {
		add("revision", fmt.Sprint(r.Revision))
	}
	add("active time", string(duration(time.Duration(r.Elapsed)*time.Millisecond)))
	add("spent", string(spent(r.Usage)))
	add("workspace", r.Workspace)
	add("parent", string(r.Parent))
	add("started", r.CreatedAt.Local().Format(time.DateTime))
	if !r.EndedAt.IsZero() {
		add("ended", r.EndedAt.Local().Format(time.DateTime))
	}
	if err := a.table(rows); err != nil {
		return err
	}
	for _, w := range a.waitingFor([]runtime.RunInfo{r}) {
		a.say("%s", w.Prompt)
		a.hint(w.Type)
	}
	if len(r.Decisions) == 0 && !r.Live && !r.Status.Final() && r.Limit == "" {
		a.hint(fmt.Sprintf("sentinel run%s --resume %s", a.sameStore(), r.ID))
	}
	return nil
}

// nextAttempt says until when a step waits, and why.
func (a *app) nextAttempt(w runtime.RetryWait) termtext.Text {
	text := termtext.Sprintf("step %s at %s", w.Step, w.At.Local().Format(time.DateTime))
	if wait := w.At.Sub(a.env.Now()); wait > 0 {
		text += termtext.Sprintf(", in %s", duration(wait.Round(time.Second)))
	}
	if w.Error != nil {
		text += termtext.Sprintf("; attempt %d failed: %s", w.Attempt, clip(w.Error.Message, 200))
	}
	return text
}
