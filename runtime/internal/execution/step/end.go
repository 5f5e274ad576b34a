package step

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/retry"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// # The end of a step
// A step with the lists onFailure and finally executes them after its last attempt, also if the run is stopped or
// reaches a limit. How the step ended is the request of call 0 of that attempt, so a crash in the lists continues
// them, and nothing before them is executed again. Each list has a scope of its own with $result. What goes wrong in
// them is logged and in the trace; it changes nothing of how the step ended.

// conclude ends a step whose last attempt, number n, has an outcome: its output, its error, or the cause for which the
// run or the branch ends.
func (x *stepExecution) conclude(n int, out json.RawMessage, failed *abi.Error, cause error) (json.RawMessage, error) {
	if !x.hasEnd() || !x.begun || x.last == nil || errors.Is(cause, ErrShutdown) {
		return x.concluded(out, failed, cause)
	}
	outcome := x.outcomeOf(out, failed, cause)
	a := x.last
	a.mu.Lock()
	first := a.block
	a.mu.Unlock()
	start, err := x.startEnd(n, first, outcome)
	if err != nil {
		return nil, err
	}
	if err := x.runEnd(n, start, outcome, x.endLimit()); err != nil {
		return nil, err
	}
	return x.concluded(out, failed, cause)
}

// concluded ends the step, or returns the cause for which its run or branch ends.
func (x *stepExecution) concluded(out json.RawMessage, failed *abi.Error, cause error) (json.RawMessage, error) {
	x.endLoopProcesses()
	var end *EndError
	if errors.As(cause, &end) && end.Step == x.address {
		x.recordRunEnd(end)
	}
	switch {
	case cause != nil:
		return nil, cause
	case failed != nil:
		return x.endFailed(failed)
	}
	return x.end(out, nil, "")
}

// recordRunEnd records the end of a step that ends its run.
func (x *stepExecution) recordRunEnd(end *EndError) {
	body := &journal.StepEndBody{Ends: end.Status, Error: x.svc.Redact.Error(end.Err)}
	ticket := x.write(true, 0, &journal.Record{Kind: journal.StepEnd, StepEnd: body})
	p := x.progress(run.OnStepEnd, 0)
	p.Status, p.Error, p.Duration = end.Status, body.Error, time.Since(x.started)
	ticket.OnDone(func(error) { x.run.Report(p) })
}

// endLoopProcesses ends the background processes that steps of a loop have started to end with it.
func (x *stepExecution) endLoopProcesses() {
	if x.step.Type != loopType {
		return
	}
	x.endBackground(func(path string) bool { return strings.HasPrefix(path, x.path+"#") })
}

// endStartedBefore ends the program that an earlier iteration of the innermost loop around a background step has
// started with it: a step has one program, or its port would be taken. Items that are executed at once have one each.
func (x *stepExecution) endStartedBefore() {
	if x.step.Fields["background"] == nil {
		return
	}
	loop, found := "", false
	for at := strings.LastIndexByte(x.path, '#'); at >= 0 && !found; at = strings.LastIndexByte(x.path[:at], '#') {
		s, err := x.run.Definition().StepAt(sentinels.PathAddress(x.path[:at]))
		if err != nil {
			return
		}
		if found = s.Type == loopType; found {
			loop = x.path[:at+1]
			if s.Fields["maxConcurrent"] != nil {
				return
			}
		}
	}
	x.endBackground(func(path string) bool {
		return strings.HasPrefix(path, loop) && sentinels.PathAddress(path) == x.address
	})
}

// endBackground ends the background processes of the run whose execution path ends chooses.
func (x *stepExecution) endBackground(ends func(path string) bool) {
	if x.svc.Executions == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := x.svc.Executions.EndBackground(ctx, x.run.ID(), ends); err != nil {
		x.svc.Log.Error("background processes did not end", "run", x.run.ID(), "step", x.address, "error", err)
	}
}

// loopType is the step type with which background processes end.
const loopType = "loop"

// resumeEnd continues a step that had begun with its onFailure and finally before a crash.
func (x *stepExecution) resumeEnd(past *history.Attempt) (json.RawMessage, error) {
	x.started, x.begun = time.Now(), true
	call := past.End()
	outcome, err := x.readOutcome(call.Start)
	if err != nil {
		return nil, err
	}
	cause := outcomeCause(outcome)
	if call.End == nil {
		if err := x.runEnd(past.Number, call.Start, outcome, x.endLimit()); err != nil {
			return nil, err
		}
	}
	if cause == nil && outcome.Error == nil {
		if x.value, err = parseOutput(x.step.Parse, outcome.Output); err != nil {
			return nil, err
		}
	}
	return x.concluded(outcome.Output, outcome.Error, cause)
}

// endRecorded ends a step of a run that ends before the step is continued: after a crash, in a process that stops the
// run. Nothing new begins, but onFailure and finally of the step, and of those within it, are executed.
func (x *stepExecution) endRecorded(ctx context.Context, cause error) (json.RawMessage, error) {
	if x.recorded == nil || x.recorded.Last == 0 || len(x.step.Blocks) == 0 || errors.Is(cause, ErrShutdown) {
		return x.concluded(nil, nil, cause)
	}
	x.started = time.Now()
	a := &attempt{stepExecution: x, n: x.recorded.Last}
	if past := x.recorded.Attempt; past != nil && past.Start != nil {
		if err := a.restore(context.WithoutCancel(ctx), past); err != nil {
			return nil, fmt.Errorf("end step %s after a crash: %w", x.address, err)
		}
		if open := a.openCall(); open != nil && open.function == abi.FuncBlock {
			if err := a.resumeCall(ctx, open); err != nil {
				return nil, err
			}
			a.work.Wait()
		}
	} else { // the last attempt failed, and the next one was due later
		a.n, x.begun = a.n+1, true
	}
	x.last = a
	return x.conclude(a.n, nil, nil, cause)
}

func (x *stepExecution) hasEnd() bool {
	return len(x.step.Blocks[sentinels.BlockOnFailure]) > 0 || len(x.step.Blocks[sentinels.BlockFinally]) > 0
}

// endLimit returns the time limit of the lists.
func (x *stepExecution) endLimit() time.Duration {
	var ms int64
	if json.Unmarshal(x.step.Fields["finallyTimeoutMs"], &ms) == nil && ms > 0 {
		return time.Duration(ms) * time.Millisecond
	}
	return sentinels.DefaultFinally
}

// outcomeOf returns how a step ended.
func (x *stepExecution) outcomeOf(out json.RawMessage, failed *abi.Error, cause error) journal.Outcome {
	var limit *LimitError
	var end *EndError
	var undecided *UndecidedError
	switch {
	case cause == nil && failed == nil:
		return journal.Outcome{Status: sentinels.StatusCompleted, Output: x.svc.Redact.JSON(out)}
	case cause == nil:
		return journal.Outcome{Status: sentinels.StatusFailed, Error: failed, Step: x.run.FailedStep()}
	case errors.As(cause, &limit):
		return journal.Outcome{Status: sentinels.StatusTimedOut, Reason: limit.Limit, Error: &abi.Error{Code: abi.Limit, Message: limit.Text, Hint: limit.Hint}}
	case errors.As(cause, &end):
		return journal.Outcome{Status: end.Status, Reason: endReason, Error: end.Err, Step: end.Step}
	case errors.As(cause, &undecided):
		return journal.Outcome{Status: sentinels.StatusFailed, Reason: undecidedReason, Error: undecided.Err, Step: undecided.Step}
	case errors.Is(cause, errSibling):
		return journal.Outcome{Status: sentinels.StatusStopped, Reason: siblingReason, Error: failure.New(abi.Cancelled, "another branch failed")}
	case errors.Is(cause, ErrStopped):
		return journal.Outcome{Status: sentinels.StatusStopped, Error: failure.New(abi.Cancelled, "run was stopped")}
	}
	return journal.Outcome{Status: sentinels.StatusFailed, Reason: causeReason, Error: failure.From(cause, abi.Internal)}
}

// The reasons of outcomes that end more than the step, besides the names of limits.
const (
	endReason       = "stop"
	undecidedReason = "interrupted"
	siblingReason   = "branch"
	causeReason     = "timeout"
)

// outcomeCause returns the cause of a recorded outcome, nil for one of the step alone.
func outcomeCause(o journal.Outcome) error {
	switch {
	case o.Reason == endReason:
		return &EndError{Status: o.Status, Err: o.Error, Step: o.Step}
	case o.Reason == undecidedReason:
		return &UndecidedError{Step: o.Step, Err: o.Error}
	case o.Reason == siblingReason:
		return errSibling
	case o.Reason == causeReason:
		return o.Error
	case o.Status == sentinels.StatusTimedOut:
		return &LimitError{Limit: o.Reason, Text: o.Error.Message, Hint: o.Error.Hint}
	case o.Status == sentinels.StatusStopped:
		return ErrStopped
	}
	return nil
}

// startEnd records the outcome and opens a scope for each list, with block numbers from first.
func (x *stepExecution) startEnd(n, first int, outcome journal.Outcome) (*journal.CallStartBody, error) {
	outcome.Error = x.svc.Redact.Error(outcome.Error)
	request, err := json.Marshal(outcome)
	if err != nil {
		return nil, err
	}
	body := &journal.CallStartBody{Function: journal.FuncEnd, Block: first, Isolated: true}
	if body.Request, err = x.svc.Values.Redacted(request); err != nil {
		return nil, err
	}
	result, err := json.Marshal(x.resultOf(outcome))
	if err != nil {
		return nil, err
	}
	for range endLists(x.step, outcome) {
		body.Branches = append(body.Branches, map[string]json.RawMessage{"result": result})
	}
	x.write(true, n, &journal.Record{Kind: journal.CallStart, CallStart: body})
	return body, nil
}

func (x *stepExecution) readOutcome(start *journal.CallStartBody) (outcome journal.Outcome, err error) {
	raw, err := x.svc.Values.Load(start.Request)
	if err == nil {
		err = json.Unmarshal(raw, &outcome)
	}
	return outcome, err
}

// endLists returns the lists that are executed after an outcome.
func endLists(s *sentinels.Step, o journal.Outcome) []string {
	var lists []string
	if o.Status != sentinels.StatusCompleted && len(s.Blocks[sentinels.BlockOnFailure]) > 0 {
		lists = append(lists, sentinels.BlockOnFailure)
	}
	if len(s.Blocks[sentinels.BlockFinally]) > 0 {
		lists = append(lists, sentinels.BlockFinally)
	}
	return lists
}

// resultOf returns $result, of [sentinels.ResultSchema]. It has all members after every end, because a reference to one
// that is missing would be an error of a step that cleans up, seen only on the day of a failure.
func (x *stepExecution) resultOf(o journal.Outcome) any {
	type fault struct {
		Code     abi.Code `json:"code"`
		Message  string   `json:"message"`
		Step     string   `json:"step"`
		StepID   string   `json:"stepId"`
		ExitCode *int     `json:"exitCode"`
		Data     abi.JSON `json:"data"`
	}
	result := struct {
		Status sentinels.Status `json:"status"`
		Reason *string          `json:"reason"`
		Error  *fault           `json:"error"`
	}{Status: o.Status}
	if o.Reason != "" {
		result.Reason = &o.Reason
	}
	if o.Error != nil {
		at := o.Step
		if at == "" && x.address != sentinels.EndAddress { // a limit, or a stop from outside
			at = x.address
		}
		result.Error = &fault{o.Error.Code, o.Error.Message, at, at, retry.ExitCode(o.Error.Message), cmp.Or(o.Error.Data, "null")}
		if s, err := x.run.Definition().StepAt(at); at != "" && err == nil {
			result.Error.StepID = cmp.Or(s.ID, s.Name, at)
		}
	}
	return result
}

// runEnd executes the lists and records the end of that. Its error is that of the process, which ends: the lists
// continue in another one.
func (x *stepExecution) runEnd(n int, start *journal.CallStartBody, outcome journal.Outcome, limit time.Duration) error {
	var first *abi.Error
	lists := endLists(x.step, outcome)
	for i, field := range lists {
		err := x.runEndList(n, start.Block+i, field, limit)
		if errors.Is(err, ErrShutdown) {
			return ErrShutdown
		}
		if err == nil {
			continue
		}
		e := *failure.From(err, abi.Internal)
		e.Message = field + ": " + e.Message
		failed := x.svc.Redact.Error(&e)
		if first == nil {
			first = failed
		}
		p := x.progress(run.OnLog, n)
		p.Level, p.Message = "warn", failed.Message
		x.run.Report(p)
	}
	x.endError = first
	x.write(true, n, &journal.Record{Kind: journal.CallEnd, CallEnd: &journal.CallEndBody{Blocks: max(1, len(lists)), Error: first}})
	return nil
}

// runEndList executes one of the lists within its time limit.
func (x *stepExecution) runEndList(n, ordinal int, field string, limit time.Duration) error {
	ctx, cancel := context.WithCancelCause(x.run.EndContext())
	defer cancel(nil)
	timer := x.run.Clock().At(x.run.Clock().Elapsed()+limit, func() {
		cancel(failure.New(abi.Timeout, "timed out after %s", limit))
	})
	defer timer.Stop()
	attempts := append(slices.Clone(x.enclosing), n)
	l := &List{
		svc: x.svc, run: x.run, steps: x.step.Blocks[field], attempts: attempts,
		sc:      x.run.BranchScope(history.BranchKey(x.path, ordinal, attempts)),
		path:    fmt.Sprintf("%s#%d.%s.", x.path, ordinal, field),
		address: x.address + "." + field + ".",
		cleanup: true,
		retry:   x.outerRetry,
	}
	_, err := l.RunSteps(ctx)
	if cause := context.Cause(ctx); cause != nil && err != nil {
		return cause
	}
	return err
}

// An End executes the onFailure and finally of a definition, after the run.
type End struct{ x *stepExecution }

// Recorded returns the outcome of the run that was recorded before a crash; ok is false if there is none.
func (e *End) Recorded() (outcome journal.Outcome, ok bool, err error) {
	if e.x.recorded == nil || e.x.recorded.Attempt == nil || e.x.recorded.Attempt.End() == nil {
		return journal.Outcome{}, false, nil
	}
	outcome, err = e.x.readOutcome(e.x.recorded.Attempt.End().Start)
	return outcome, true, err
}

// Run executes the lists after an outcome of the run. failed is their first error. err is that of the process, which
// ends.
func (e *End) Run(outcome journal.Outcome, limit time.Duration) (failed *abi.Error, err error) {
	x := e.x
	if len(endLists(x.step, outcome)) == 0 {
		return nil, nil
	}
	if x.recorded != nil && x.recorded.Attempt != nil && x.recorded.Attempt.End() != nil {
		call := x.recorded.Attempt.End()
		if call.End != nil {
			return call.End.Error, nil
		}
		err = x.runEnd(1, call.Start, outcome, limit)
		return x.endError, err
	}
	start, err := x.startEnd(1, 0, outcome)
	if err != nil {
		return nil, err
	}
	err = x.runEnd(1, start, outcome, limit)
	return x.endError, err
}
