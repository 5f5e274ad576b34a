package sentinel

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

type targetIn struct {
	Run        string `json:"run,omitempty" jsonschema:"the run"`
	SentinelID string `json:"sentinelId,omitempty" jsonschema:"a sentinel: its newest run that is not over"`
}

// target finds the run that is meant.
func (f family) target(in targetIn, over bool) (runtime.RunInfo, error) {
	if in.Run != "" {
		return f.rt.Status(sentinels.RunID(in.Run))
	}
	if in.SentinelID == "" {
		return runtime.RunInfo{}, &abi.Error{Code: abi.BadFields, Message: "neither a run nor a sentinel is named", Hint: "give run or sentinelId"}
	}
	if info, err := f.rt.Status(sentinels.RunID(in.SentinelID)); err == nil {
		return info, nil // sentinelId may be a run's id: handles and definitions share the parameter
	}
	filter := runtime.RunFilter{Sentinel: sentinels.ID(in.SentinelID), OfStored: f.rt.IsStored(sentinels.ID(in.SentinelID)), Limit: 1}
	if !over {
		filter.Statuses = runtime.Unfinished()
	}
	runs, err := f.rt.Runs(filter)
	if err != nil {
		return runtime.RunInfo{}, err
	}
	if len(runs) > 0 {
		return runs[0], nil
	}
	if _, err := f.rt.Definition(sentinels.ID(in.SentinelID)); err != nil {
		return runtime.RunInfo{}, err
	}
	return runtime.RunInfo{}, &abi.Error{Code: abi.NotFound, Message: fmt.Sprintf("sentinel %q has no such run", in.SentinelID)}
}

func (f family) stop(ctx context.Context, call *command.Call, in targetIn) (runtime.RunInfo, error) {
	info, err := f.target(in, false)
	if err != nil {
		return info, err
	}
	if info.ID == call.Run {
		return info, &abi.Error{Code: abi.Conflict, Message: "stop: a run cannot wait for its own end", Hint: "let the step fail, or end the loop by its condition"}
	}
	if err := f.mayStop(call, info); err != nil {
		return info, err
	}
	if err := f.rt.StopWith(ctx, info.ID, runtime.StopOptions{By: steeredBy(call), Over: !call.Bounded()}); err != nil {
		return info, err
	}
	return f.rt.Status(info.ID)
}

// mayStop returns the error of a call that stops a run, also to begin another one in its place.
func (f family) mayStop(call *command.Call, info runtime.RunInfo) error {
	if err := f.keepsGatesAround(call, info, true, func(r runtime.RunInfo) bool { return executesFor(call, r) }); err != nil {
		return err
	}
	return f.notHeldBack(call, info, false)
}

type pauseIn struct {
	targetIn
	Tree  *bool  `json:"tree,omitempty" jsonschema:"also every run below it; true if not given"`
	Until string `json:"until,omitempty" jsonschema:"with sentinelId: pause its triggers until this time, when the pause ends by itself, such as 2026-01-31T09:30:00Z; its runs continue"`
}

func (f family) pause(ctx context.Context, call *command.Call, in pauseIn) (runtime.RunInfo, error) {
	if in.Until != "" {
		until, err := pauseEnd(in)
		if err != nil {
			return runtime.RunInfo{}, err
		}
		return f.pauseTriggers(ctx, call, in.SentinelID, until)
	}
	info, err := f.target(in.targetIn, false)
	if abi.CodeOf(err) == abi.NotFound && in.Run == "" && in.SentinelID != "" {
		return f.pauseTriggers(ctx, call, in.SentinelID, time.Time{})
	}
	if err != nil {
		return info, err
	}
	if err := liftsQuarantine(call, info); err != nil {
		return info, err
	}
	// An agent's own run of a gate that is paused would have the firings behind it wait.
	err = f.keepsGatesAround(call, info, true, func(r runtime.RunInfo) bool { return r.Parent != "" && executesFor(call, r) })
	if err != nil {
		return info, err
	}
	opt := runtime.PauseOptions{By: steeredBy(call), Tree: in.Tree == nil || *in.Tree, Over: !call.Bounded()}
	if err := f.rt.PauseWith(ctx, info.ID, opt); err != nil {
		return info, err
	}
	return f.rt.Status(info.ID)
}

// pauseEnd returns the time at which a pause ends by itself.
func pauseEnd(in pauseIn) (time.Time, error) {
	bad := func(text, hint string) (time.Time, error) {
		return time.Time{}, &abi.Error{Code: abi.BadFields, Field: "until", Permanent: true, Message: text, Hint: hint}
	}
	if in.Run != "" || in.SentinelID == "" {
		return bad("pause: until is for the triggers of a sentinel", "name the sentinel as sentinelId, and no run")
	}
	until, err := time.Parse(time.RFC3339, in.Until)
	switch {
	case err != nil:
		return bad(fmt.Sprintf("invalid until %q: want a time such as 2026-01-31T09:30:00Z", in.Until), "")
	case !until.After(time.Now()):
		return bad(fmt.Sprintf("pause: %s is over", until.Format(time.RFC3339)), "")
	}
	return until, nil
}

type resumeIn struct {
	Run           string  `json:"run,omitempty" jsonschema:"the run"`
	SentinelID    string  `json:"sentinelId,omitempty" jsonschema:"a sentinel: its newest run that is not over"`
	MaxIterations int     `json:"maxIterations,omitempty" jsonschema:"this many more iterations" minimum:"0"`
	TimeoutMs     int64   `json:"timeoutMs,omitempty" jsonschema:"this much more time" minimum:"0"`
	BudgetUSD     float64 `json:"budgetUsd,omitempty" jsonschema:"this much more money" minimum:"0"`
	BudgetTokens  int64   `json:"budgetTokens,omitempty" jsonschema:"this many more tokens" minimum:"0"`
	BudgetCalls   int64   `json:"budgetCalls,omitempty" jsonschema:"this many more model calls" minimum:"0"`
	OnInterrupt   string  `json:"onInterrupt,omitempty" jsonschema:"for calls in doubt" enum:"retry,fail,ask"`
	Tree          *bool   `json:"tree,omitempty" jsonschema:"also the runs below it that were paused with it; true if not given"`
	Workspace     string  `json:"workspace,omitempty" jsonschema:"folder that a run which no process executes works in from now on, for persons"`
	By            string  `json:"by,omitempty" jsonschema:"who resumes it; the user if not given"`
	Comment       string  `json:"comment,omitempty" jsonschema:"why; a quarantined run needs it, and goes on"`
}

func (f family) resume(ctx context.Context, call *command.Call, in resumeIn) (runtime.RunInfo, error) {
	info, err := f.target(targetIn{in.Run, in.SentinelID}, false)
	paused := false
	if in.Run == "" && in.SentinelID != "" {
		var bad error
		if _, paused, bad = f.rt.PauseOfTriggers(sentinels.ID(in.SentinelID)); bad != nil {
			return info, bad
		}
	}
	if paused {
		resumed, failed := f.resumeTriggers(ctx, call, in.SentinelID)
		if failed != nil || abi.CodeOf(err) == abi.NotFound || err == nil && info.Status != sentinels.StatusPaused {
			return resumed, failed
		}
	}
	if err != nil {
		return info, err
	}
	if err := heldBack(call, info, false); err != nil {
		return info, err
	}
	more := runtime.LimitExtension{Iterations: in.MaxIterations, TimeoutMs: in.TimeoutMs, CostUSD: in.BudgetUSD, Tokens: in.BudgetTokens, Calls: in.BudgetCalls}
	if more != (runtime.LimitExtension{}) && call.By != command.ByUser {
		return info, &abi.Error{Code: abi.Denied, Permanent: true, Message: fmt.Sprintf("resume run %s: only a person raises its limits", info.ID), Hint: decides}
	}
	if answer := sentinels.Interrupt(in.OnInterrupt); answer != "" && answer != sentinels.InterruptAsk && call.By != command.ByUser {
		return info, &abi.Error{Code: abi.Denied, Permanent: true, Field: "onInterrupt", Message: fmt.Sprintf("resume run %s: only a person says what happens to its calls in doubt", info.ID), Hint: decides}
	}
	workspace, err := f.movedTo(call, info, in.Workspace)
	if err != nil {
		return info, err
	}
	err = f.rt.Resume(ctx, info.ID, runtime.ResumeOptions{
		Extension: more, Workspace: workspace,
		OnInterrupt: sentinels.Interrupt(in.OnInterrupt), By: author(call, in.By), Comment: in.Comment, Tree: in.Tree == nil || *in.Tree,
		Over: func(by string) error { return endsPauseOf(call, info.ID, by) },
	})
	if err != nil {
		return info, err
	}
	return f.rt.Status(info.ID)
}

// steeredBy returns who pauses or stops a run, as its summary has it. A step that is bounded is one of an agent or a
// model, which may go on with what it held back.
func steeredBy(call *command.Call) string {
	if call.By == command.ByStep && call.Bounded() {
		return string(command.ByAgent)
	}
	return string(call.By)
}

// movedTo returns the folder that a run is moved to, as an absolute path; empty for none. A run that
// works below the folder stays: the CLI names the folder of a project in the same way.
func (f family) movedTo(call *command.Call, run runtime.RunInfo, dir string) (string, error) {
	switch {
	case dir == "":
		return "", nil
	case call.By != command.ByUser:
		return "", &abi.Error{Code: abi.Denied, Permanent: true, Field: "workspace", Message: "only a person moves a run to another workspace", Hint: "leave workspace out"}
	}
	dir = inWorkspace(call, dir)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", &abi.Error{Code: abi.NotFound, Permanent: true, Field: "workspace", Message: fmt.Sprintf("workspace %q: no such folder", dir)}
	}
	if _, err := os.Stat(run.Workspace); err == nil {
		if rel, err := filepath.Rel(dir, run.Workspace); err == nil && filepath.IsLocal(rel) {
			return "", nil
		}
	}
	return dir, nil
}

// author returns who a call is made for: a person, by the name that is given. A
// step or a model cannot pass for one.
func author(call *command.Call, name string) string {
	if call.By == command.ByUser && name != "" {
		return name
	}
	return call.Who()
}

type decideIn struct {
	Run        string          `json:"run,omitempty" jsonschema:"the run"`
	SentinelID string          `json:"sentinelId,omitempty" jsonschema:"a sentinel: its newest run that is not over"`
	Question   string          `json:"question,omitempty" jsonschema:"what is answered: question of the pending decision, from sentinel/status or inbox/list. Another one is refused"`
	Call       string          `json:"call,omitempty" jsonschema:"name of the pending decision; question names it too"`
	Verdict    string          `json:"verdict" jsonschema:"the answer" enum:"retry,skip,fail,approve,reject"`
	By         string          `json:"by,omitempty" jsonschema:"who decides; the user if not given"`
	Comment    string          `json:"comment,omitempty" jsonschema:"why; to retry a step that is quarantined it is needed"`
	Result     json.RawMessage `json:"result,omitempty" jsonschema:"with skip: what the call is taken to have answered"`
}

func (f family) decide(ctx context.Context, call *command.Call, in decideIn) (runtime.RunInfo, error) {
	info, err := f.target(targetIn{in.Run, in.SentinelID}, false)
	if err != nil {
		return info, err
	}
	if in.Question == "" {
		if err := questionMissing(info, in.Call); err != nil {
			return info, err
		}
	}
	err = f.rt.Decide(ctx, info.ID, runtime.Decision{Call: in.Call, Question: in.Question, Verdict: in.Verdict, By: author(call, in.By), Comment: in.Comment, Result: in.Result})
	if err != nil {
		return info, err
	}
	return f.rt.Status(info.ID)
}

// questionMissing returns an error that names the questions of a run. An answer without one
// would be taken for whatever is asked when it arrives: sent twice, it would approve two
// rounds of a loop, or the step behind the one that was meant.
func questionMissing(info runtime.RunInfo, call string) error {
	var asked []string
	for _, q := range info.Decisions {
		if q.Question != "" && (call == "" || q.Call == call) {
			asked = append(asked, fmt.Sprintf("%s for %q", q.Question, textcut.Mark(q.Prompt, 200)))
		}
	}
	if len(asked) == 0 {
		return nil
	}
	return &abi.Error{
		Code: abi.BadFields, Permanent: true, Field: "question", Message: fmt.Sprintf("decide run %s: question is missing: which one is answered", info.ID),
		Hint: "give question: " + strings.Join(asked, ", "),
	}
}
