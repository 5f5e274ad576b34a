package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/retry"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// statusCommand accepts a sentinel's name too, which means its newest run.
func (a verbs) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use: "status [RUN|NAME]", Short: "Show the state of a run, or of the newest run of a sentinel",
		Example: "  sentinel status\n  sentinel status nightly",

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

// A state is what a table shows of the reply of sentinel/status.
type state struct {
	runtime.RunInfo
	CurrentStep *struct {
		ID, Address string
		Type        sentinels.StepType
	}
	LastStepAt int64
	Variables  map[string]json.RawMessage
	NextFire   time.Time
}

// statusOf shows a run and, where a sentinel was named, its triggers. A sentinel that
// never ran is idle.
func (a verbs) statusOf(ctx context.Context, s *app.Session, word string) error {
	stored := a.Stored(ctx, s, word)
	info, err := a.FindRun(ctx, s, word, true)
	params := map[string]any{"run": info.ID}
	if abi.CodeOf(err) == abi.NotFound && stored {
		params, err = map[string]any{"sentinelId": word}, nil
	}
	if err != nil {
		return err
	}
	var reply json.RawMessage
	if err := s.Call(ctx, "sentinel/status", params, &reply); err != nil {
		return err
	}
	if a.Flags.Output != output.FormatTable {
		return a.WriteJSON(reply)
	}
	var out struct{ State state }
	if err := json.Unmarshal(reply, &out); err != nil {
		return fmt.Errorf("read the status of %s: %w", word, err)
	}
	if err := a.showState(out.State); err != nil || !stored {
		return err
	}
	list, err := a.triggersOf(ctx, s, sentinels.ID(word), 0)
	if err != nil || len(list) == 0 {
		return err
	}
	if err := a.Out.Write("\n"); err != nil {
		return err
	}
	return a.showTriggers(s, list)
}

// openRuns shows the runs that have not ended.
func (a verbs) openRuns(ctx context.Context, s *app.Session) error {
	runs, err := s.Unfinished(ctx)
	if err != nil {
		return err
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

// showState writes where a run, or a sentinel without one, stands.
func (a verbs) showState(r state) error {
	p := a.PaintOut
	var rows []output.Row
	row := func(name termtext.Text, value termtext.Text) {
		if value != "" {
			rows = append(rows, output.Row{p.Dim(name), value})
		}
	}
	add := func(name termtext.Text, value string) { row(name, output.Escape(value)) }
	add("run", string(r.ID))
	add("sentinel", string(r.Sentinel))
	row("status", output.Status(p, r.Status))
	if why := reason(r.RunInfo); len(r.Queued) == 0 || why != r.Queued[0].Reason { // which has a row of its own, with its time
		add("why", output.OneLine(retry.WithoutLine(why)))
	}
	if r.Error != nil && r.Status != sentinels.StatusStopped {
		add("hint", output.OneLine(r.Error.Hint))
	}
	add("reason", r.Limit)
	if r.CurrentStep != nil && r.Step == "" {
		add("step", strings.Join(strings.Fields(r.CurrentStep.Address+" "+string(r.CurrentStep.Type)+" "+r.CurrentStep.ID), " "))
	}
	if r.Step != "" {
		at := r.Step
		if r.CurrentStep != nil && r.CurrentStep.ID != "" {
			at += " " + r.CurrentStep.ID
		}
		add("failed at", at)
	}
	for _, w := range r.Retries {
		row("next attempt", a.nextAttempt(w))
	}
	for _, w := range r.Queued[:min(len(r.Queued), maxQueuedRows)] {
		row("queued", queued(w))
	}
	if n := len(r.Queued) - maxQueuedRows; n > 0 {
		row("queued", termtext.Sprintf("and %d more", n))
	}
	if r.ID != "" {
		add("iteration", fmt.Sprint(r.Iteration))
	}
	if r.Revision > 0 {
		add("revision", fmt.Sprint(r.Revision))
	}
	if r.ID != "" {
		add("active time", string(output.Duration(time.Duration(r.Elapsed)*time.Millisecond)))
	}
	add("spent", string(output.Spent(r.Usage)))
	add("workspace", r.Workspace)
	add("parent", string(r.Parent))
	at := func(name termtext.Text, t time.Time) {
		if !t.IsZero() {
			row(name, output.LocalTime(t))
		}
	}
	at("started", r.CreatedAt)
	if r.LastStepAt > 0 && !r.Status.Final() {
		at("last step", time.UnixMilli(r.LastStepAt))
	}
	at("ended", r.EndedAt)
	at("next fire", r.NextFire)
	for _, name := range output.SortedKeys(r.Variables) {
		row(output.Escape("$"+name), output.ClipJSON(r.Variables[name], 100))
	}
	if err := a.Pairs(rows); err != nil {
		return err
	}
	if r.ID == "" {
		a.Info("sentinel %q has no run", r.Sentinel)
		return nil
	}
	for _, w := range a.PendingActions([]runtime.RunInfo{r.RunInfo}) {
		a.Info("%s", w.Question())
		a.Hint(w.Type)
	}
	if len(r.Decisions) == 0 && !r.Live && !r.Status.Final() && r.Limit == "" {
		a.Hint(fmt.Sprintf("sentinel run%s --resume %s", a.SameStore(), r.ID))
	}
	return nil
}

// maxQueuedRows bounds how many waits the status of a run shows.
const maxQueuedRows = 5

// queued describes what waits at a limit.
func queued(w runtime.QueueWait) termtext.Text {
	what := termtext.Text("the run")
	if w.Step != "" {
		what = termtext.Sprintf("step %s", w.Step)
	}
	return what + termtext.Sprintf(" since %s: %s", output.LocalTime(w.Since), w.Reason)
}

// nextAttempt describes until when a step waits, and why.
func (a verbs) nextAttempt(w runtime.RetryWait) termtext.Text {
	text := termtext.Sprintf("step %s at %s", w.Step, output.LocalTime(w.At))
	if wait := w.At.Sub(a.Env.Now()); wait > 0 {
		text += termtext.Sprintf(", in %s", output.Duration(wait.Round(time.Second)))
	}
	if w.Error != nil {
		text += termtext.Sprintf("; attempt %d failed: %s", w.Attempt, output.Clip(w.Error.Message, 200))
	}
	return text
}
