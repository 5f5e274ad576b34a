package step

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/retry"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/role"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A stepExecution is one execution of a step, including its retries.
type stepExecution struct {
	svc        *Services
	run        Run
	step       *sentinels.Step
	sc         Scope
	path       string             // execution path of the step
	address    string             // address of the step in the definition
	enclosing  []int              // numbers of the enclosing attempts, outermost first
	outerRetry json.RawMessage    // $retry of the step around, nil if none is repeated
	recorded   *history.Execution // records of the execution in an iteration that a crash interrupted; else nil

	started   time.Time
	keyOnce   sync.Once
	keyText   string
	condition string            // value of the condition, for display
	reads     map[string]string // and what it read
	label     string            // label of the first host call, for display

	value          json.RawMessage // of outputTo, if the step parses its output; nil otherwise
	category       string          // of the error of the attempt before, as the journal has it
	suspectCrashes int             // number of crashes counted against a suspected step; 0 for any other
	turnMu         sync.Mutex
	hasTurn        bool
	last           *attempt
	endError       *abi.Error // of onFailure or finally
	settle         func()     // see [failures]; nil if no block waits for the step
	begun          bool       // an attempt has begun, so the journal contains the step's type and name
}

// runStep executes the step to its end. It returns the output of the step, or its error
// unless onError handles that. For a step that ended before a crash it returns the
// recorded outcome; its variables are set already.
func (x *stepExecution) runStep(ctx context.Context) (json.RawMessage, error) {
	if x.recorded != nil && x.recorded.End != nil {
		return x.recordedResult(x.recorded.End)
	}
	x.started = time.Now()
	if x.recorded != nil && x.recorded.Attempt != nil && x.recorded.Attempt.End() != nil {
		return x.resumeEnd(x.recorded.Attempt)
	}
	if cause := context.Cause(ctx); cause != nil {
		return x.endRecorded(ctx, cause)
	}
	n, failed, err := x.resumeAt(ctx)
	if err != nil {
		return nil, err
	}
	if refused, err := x.checkQuarantine(ctx); err != nil {
		return nil, err
	} else if refused != nil {
		return x.endFailed(refused)
	}
	for {
		if err := x.run.WaitWhilePaused(ctx); err != nil {
			return x.conclude(n, nil, nil, err)
		}
		out, skipped, err := x.runAttempt(ctx, n, failed)
		if err == nil && skipped {
			return x.end(nil, nil, "condition")
		}
		if err == nil {
			return x.conclude(n, out, nil, nil)
		}
		if cause := endCause(ctx, err); cause != nil {
			return x.conclude(n, nil, nil, cause) // the run or the branch ends here, not the step
		}
		failed = x.svc.Redact.Error(failure.From(err, abi.Internal))
		if x.onError().Action == sentinels.ActionRetry {
			again, err := x.retry(ctx, n, failed)
			if err != nil {
				return x.conclude(n, nil, nil, err)
			}
			if again {
				x.endLoopProcesses() // the next attempt starts its own
				n++
				continue
			}
		}
		return x.conclude(n, nil, failed, nil)
	}
}

// settled says that the step goes on after the failure of a step within it, if a block waits to learn that.
func (x *stepExecution) settled() {
	if x.settle != nil {
		x.settle()
	}
}

// onError returns what happens after an error of the step: its own, else that of the definition, which does not hold
// for steps with nested steps, whose steps have it.
func (x *stepExecution) onError() sentinels.OnError {
	if x.step.OnError.Action != "" || len(x.step.Blocks) > 0 {
		return x.step.OnError
	}
	return x.run.Definition().OnError
}

// endFailed ends a step whose last attempt failed, according to its onError.
func (x *stepExecution) endFailed(failed *abi.Error) (json.RawMessage, error) {
	if x.onError().Action == sentinels.ActionSkip {
		return x.end(skippedOutput(failed), failed, "error")
	}
	return x.end(nil, failed, "")
}

// endCause returns a cause other than the step itself: the run ends or the branch was
// cancelled. It returns nil if the step failed.
func endCause(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	switch {
	case cause != nil:
		return cause
	case isLimit(err), errors.Is(err, ErrShutdown), errors.Is(err, ErrStopped):
		return err
	}
	return nil
}

// resumeAt returns the number of the attempt to begin with, and the error of the
// attempt before it. After a crash that is the interrupted attempt, or the next one if
// a retry was recorded.
func (x *stepExecution) resumeAt(ctx context.Context) (int, *abi.Error, error) {
	if x.recorded == nil || x.recorded.Last == 0 {
		return 1, nil, nil
	}
	x.category = x.recorded.Category
	if x.recorded.Retry != nil {
		due := time.UnixMicro(x.recorded.Retry.Due)
		defer x.showRetry(due, x.recorded.Last, x.recorded.Retry.Error)()
		if err := x.wait(ctx, due); err != nil {
			return 0, nil, err
		}
		return x.recorded.Last + 1, x.recorded.Retry.Error, nil
	}
	return x.recorded.Last, nil, nil
}

// retry decides whether a failed attempt is followed by another one, records the
// decision and waits until the attempt is due, in calendar time.
func (x *stepExecution) retry(ctx context.Context, n int, failed *abi.Error) (bool, error) {
	class := x.svc.Classify.Classify(ctx, role.SourceStep, failed)
	after := time.Duration(min(failed.RetryAfterMs, retry.MaxRetryAfter.Milliseconds())) * time.Millisecond
	policy := x.onError().Retry
	d := retry.Decide(class, n-1, policy, after)
	if !d.Retry {
		return false, nil
	}
	if wanted, err := x.retryWanted(ctx, n, policy, class, failed); err != nil || !wanted {
		return false, err
	}
	x.category = string(class.Category)
	x.settled()
	due := x.svc.Calendar.Now().Add(d.Delay)
	ticket := x.write(true, n, &journal.Record{Kind: journal.Retry, Retry: &journal.RetryBody{
		Error: failed, Category: x.category, Confidence: class.Confidence, Due: due.UnixMicro(), Left: d.AttemptsRemaining,
	}})
	p := x.progress(run.OnRetry, n)
	p.Error, p.RetryAt, p.Category, p.Duration = failed, due, x.category, d.Delay
	ticket.OnDone(func(error) { x.run.Report(p) })
	defer x.showRetry(due, n, failed)()
	return true, x.wait(ctx, due)
}

// waitsUntil shows in the run's status that the step waits for its next attempt,
// until the returned function is called.
func (x *stepExecution) showRetry(due time.Time, n int, failed *abi.Error) (over func()) {
	return x.run.ShowRetry(&run.RetryWait{Step: x.address, Attempt: n, At: due.UTC(), Error: failed})
}

// wait waits until a time of the calendar.
func (x *stepExecution) wait(ctx context.Context, due time.Time) error {
	return x.svc.Calendar.WaitFor(ctx, due)
}

// runAttempt executes attempt n, or continues it after a crash. skipped reports that
// the step's condition is false.
func (x *stepExecution) runAttempt(ctx context.Context, n int, failed *abi.Error) (out json.RawMessage, skipped bool, err error) {
	a := &attempt{stepExecution: x, n: n}
	x.last = a
	if skipped, err = x.prepare(ctx, a, failed); err != nil || skipped {
		return nil, skipped, err
	}
	defer a.releaseTurn()
	out, err = a.execute(ctx)
	if err == nil {
		switch cut := cutOutput(out, a.outline); {
		case cut == nil:
			x.value, err = parseOutput(x.step.Parse, out)
		case x.step.Parse == "":
			a.log("warn", cut.Message+"; "+cut.Hint)
		default:
			cut.Field, cut.Message = "parse", "parse: "+cut.Message
			if cut.Permanent { // no other attempt makes it whole
				cut.Hint = `without "parse", ` + cut.Hint
			}
			err = cut
		}
	}
	return out, false, err
}

// prepare begins the attempt, or restores it after a crash. skipped reports that the
// step's condition is false.
func (x *stepExecution) prepare(ctx context.Context, a *attempt, failed *abi.Error) (skipped bool, err error) {
	if x.recorded != nil && x.recorded.Attempt != nil && x.recorded.Attempt.Number == a.n && x.recorded.Attempt.Start != nil {
		return false, a.restore(ctx, x.recorded.Attempt)
	}
	a.retry = x.retryValue(a.n, failed)
	if x.step.Condition != "" {
		vars := ConditionVars(x.run.Lookup(x.sc, a.retry))
		v, err := x.svc.Conditions.Eval(ctx, x.run.EmitsFor(), x.step.Condition, vars)
		if err != nil {
			e := *failure.From(err, abi.Plugin)
			e.Field = "condition"
			return false, &e
		}
		x.condition, x.reads = x.svc.ConditionText(v), x.svc.ReadsIn(x.step.Condition, vars)
		if !v.Truthy {
			return true, nil
		}
	}
	x.endStartedBefore()
	return false, a.begin(ctx)
}

// retryValue returns $retry, which is also the retry field of the guest's input in a repeated attempt. In a first
// attempt it is that of the nearest step around that is repeated, nil without one.
func (x *stepExecution) retryValue(n int, failed *abi.Error) json.RawMessage {
	if n <= 1 || failed == nil {
		return x.outerRetry
	}
	b, err := json.Marshal(map[string]any{"attempts": n - 1, "error": failed, "category": x.category})
	if err != nil {
		return nil
	}
	return b
}

// end records the end of the step, which also sets its variables.
func (x *stepExecution) end(out json.RawMessage, failed *abi.Error, skipped string) (json.RawMessage, error) {
	if out != nil {
		if size := x.sc.Size() + int64(len(out)+len(x.value)); size > x.run.VariableLimit() {
			failed = memoryError(x.run, "variables would take %d bytes with the output of step %s", size, x.address)
			out, skipped = nil, ""
		}
	}
	out = x.svc.Redact.JSON(out)
	body := &journal.StepEndBody{Error: failed, Skipped: skipped}
	if skipped == "condition" {
		body.Condition, body.Reads = x.condition, x.reads
	}
	if !x.begun {
		body.Type, body.ID, body.Name = string(x.step.Type), x.step.ID, x.step.Name
	}
	if skipped != "condition" && (failed == nil || skipped == "error") {
		body.OutputTo = x.step.OutputTo
	}
	var err error
	if body.Output, err = x.svc.Values.Keep(out); err != nil {
		return nil, err
	}
	if history.ChangesScope(body) && x.step.ID != "" && x.run.Names().Kept(x.step.ID) {
		body.Kept = x.step.ID
	}
	if failed == nil && out != nil && x.value != nil {
		out = x.svc.Redact.JSON(x.value)
		if body.Value, err = x.svc.Values.Keep(out); err != nil {
			return nil, err
		}
	}
	n := 0
	ticket := x.write(true, n, &journal.Record{Kind: journal.StepEnd, StepEnd: body})
	p := x.progress(run.OnStepEnd, n)
	p.Output, p.Error, p.Skipped, p.Duration = out, failed, skipped, time.Since(x.started)
	ticket.OnDone(func(error) { x.run.Report(p) })
	if failed != nil && skipped == "" {
		return nil, failed
	}
	return out, nil
}

// recordedResult returns the outcome of a step that ended before a crash.
func (x *stepExecution) recordedResult(body *journal.StepEndBody) (json.RawMessage, error) {
	if body.Ends != "" {
		return nil, &EndError{Status: body.Ends, Err: body.Error, Step: x.address}
	}
	if body.Error != nil && body.Skipped == "" {
		return nil, body.Error
	}
	if !body.Value.Empty() {
		return x.svc.Values.Load(body.Value)
	}
	return x.svc.Values.Load(body.Output)
}

// skippedOutput returns the output of a failed step that onError skips. The members of the error's data are members of
// it too, so that $answer.approved exists after an approval and a rejection alike, and so is the exit code of a program.
func skippedOutput(failed *abi.Error) json.RawMessage {
	out := map[string]any{}
	if failed.Data != "" {
		_ = json.Unmarshal([]byte(failed.Data), &out) // an object, which the guest's text was checked to be
	}
	if code := retry.ExitCode(failed.Message); code != nil {
		out["exitCode"] = *code
	}
	out["success"], out["skipped"], out["error"] = false, true, failed
	b, err := json.Marshal(out)
	if err != nil {
		panic(err) // values that were decoded, and an *abi.Error
	}
	return b
}

// write appends a record of attempt n, 0 for the execution as a whole.
func (x *stepExecution) write(lazy bool, n int, rec *journal.Record) *store.Ticket {
	x.stamp(n, rec)
	return x.run.Write(Commit{Lazy: lazy}, rec)
}

// stamp sets the path and the attempts of a record.
func (x *stepExecution) stamp(n int, rec *journal.Record) {
	rec.Path = x.path
	rec.Attempts = append(append(make([]int, 0, len(x.enclosing)+1), x.enclosing...), n)
}

// progress returns a progress report about the step.
func (x *stepExecution) progress(kind run.ProgressKind, n int) run.Progress {
	return run.Progress{Event: kind, Address: x.address, Path: x.path, Step: x.shownName(), Type: x.step.Type, Attempt: n, Iteration: x.run.Iteration(), Label: x.label}
}

// shownName returns the step's name, or its id, for people.
func (x *stepExecution) shownName() string { return cmp.Or(x.step.Name, x.step.ID) }

// key returns the idempotency key of the step execution, the same for all attempts.
func (x *stepExecution) key() string {
	x.keyOnce.Do(func() { x.keyText = ExecutionKey(x.run.ID(), x.run.Iteration(), x.path) })
	return x.keyText
}
