package step

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// beginCall records the start of a call and starts its work. An effect outside the
// store begins only when the start record is durable.
func (a *attempt) beginCall(ctx context.Context, c *call, body journal.CallStartBody) error {
	body.Seq, body.Function, body.Hash = c.seq, c.function, c.hash
	var err error
	if body.Request, err = a.svc.Values.Redacted(c.request); err != nil {
		return err
	}
	c.start = &body
	if a.label == "" {
		a.label = body.Label
	}
	t := a.write(!body.Effect, a.n, &journal.Record{Kind: journal.CallStart, CallStart: &body})
	p := a.progress(run.OnCallStart, a.n)
	p.Function, p.Label = c.function, body.Label
	c.addModelCall(&p)
	t.OnDone(func(error) { a.run.Report(p) })
	if !body.Effect {
		t = nil
	}
	a.startWork(ctx, c, t, a.workOf(c))
	return nil
}

// workOf returns the work of a call.
func (a *attempt) workOf(c *call) callWork {
	f, _ := hostFunctionOf(c.function)
	return func(ctx context.Context, c *call) (callEnd, error) { return f.work(a, ctx, c) }
}

// startWork starts the work of a call on a goroutine of the run. The goroutine records
// the answer, so the guest may be unloaded meanwhile.
func (a *attempt) startWork(ctx context.Context, c *call, durable *store.Ticket, do callWork) {
	c.working = true
	a.run.Work().Add(1)
	a.work.Add(1)
	if durable != nil {
		a.svc.Effects.Begin()
	}
	go a.doWork(ctx, c, durable, do)
}

// doWork is the goroutine of a call. The functions in which it blocks have small stack
// frames, because ten thousand of them may wait.
func (a *attempt) doWork(ctx context.Context, c *call, durable *store.Ticket, do callWork) {
	defer a.run.Work().Done()
	defer a.work.Done()
	started := time.Now()
	if durable != nil {
		defer a.svc.Effects.End()
		if !a.awaitStart(ctx, c, durable) {
			return
		}
	}
	a.sleep(ctx, c)
	a.finishWork(ctx, c, do, started)
}

// awaitStart waits until the start record of a call is durable. It returns false if the
// call is not made.
func (a *attempt) awaitStart(ctx context.Context, c *call, t *store.Ticket) bool {
	err := t.Wait(ctx)
	if err == nil {
		return true
	}
	// If the run ends, the call has not begun, and a resumed run makes it again.
	if !RunEnding(ctx) {
		a.complete(c, callEnd{err: failure.From(err, abi.Internal)})
	}
	return false
}

// finishWork does the work of a call and records its result.
func (a *attempt) finishWork(ctx context.Context, c *call, do callWork, started time.Time) {
	end, err := do(ctx, c)
	// A call that the end of the run or the process interrupts gets no end record. Runs
	// are cancelled one after the other, so a child may have returned ErrShutdown
	// before ctx ends.
	if err != nil && (RunEnding(ctx) || errors.Is(err, ErrShutdown)) {
		return
	}
	if err != nil && end.err == nil {
		end.err = failure.From(err, abi.Internal)
		if cause := context.Cause(ctx); cause != nil && (errors.Is(err, context.Canceled) || errors.Is(err, cause)) {
			end.err = failure.From(cause, abi.Cancelled)
		}
	}
	p := a.progress(run.OnCallEnd, a.n)
	p.Function, p.Label, p.Duration, p.Error, p.Usage = c.function, c.start.Label, time.Since(started), end.err, end.body.Usage
	done := a.complete(c, end)
	c.addModelCall(&p)
	done.OnDone(func(error) { a.run.Report(p) })
}

// complete records the end of a call and sets its answer, both redacted.
func (a *attempt) complete(c *call, end callEnd) *store.Ticket {
	body := end.body
	end.result, end.err = a.svc.Redact.JSON(end.result), a.svc.Redact.Error(end.err)
	body.Seq, body.Error = c.seq, end.err
	kept, err := a.svc.Values.Keep(end.result)
	if err != nil {
		body.Error = failure.From(err, abi.Internal)
	} else {
		body.Result = kept
	}
	if c.start == nil { // there is no start record, and a replay compares the request
		body.Function, body.Hash = c.function, c.hash
		if body.Request, err = a.svc.Values.Redacted(c.request); err != nil {
			body.Error = failure.From(err, abi.Internal)
		}
	}
	a.mu.Lock()
	body.Logs, body.Queue, body.Queued = a.logs, c.queue, c.queuedFor.Microseconds()
	a.callBytes += int64(len(end.result))
	if c.isWait() {
		a.lastWaitEnd = a.run.Clock().Elapsed()
	}
	a.mu.Unlock()
	rec := &journal.Record{Kind: journal.CallEnd, Time: time.Now().UnixMicro(), CallEnd: &body}
	a.stamp(a.n, rec)
	t := a.run.Write(Commit{Lazy: true, Puts: end.puts}, rec)
	c.answer(end.result, body.Error, time.UnixMicro(rec.Time))
	return t
}

// answer sets the answer of a call.
func (c *call) answer(result json.RawMessage, failed *abi.Error, at time.Time) {
	c.result, c.failed, c.at = result, failed, at
	close(c.done)
}

// reply returns the answer in the form that the guest reads: {"ok": ...} or {"error":
// ...}.
func (c *call) reply() wasm.Reply {
	if c.failed != nil {
		body, _ := json.Marshal(struct { // an *abi.Error has only plain fields
			Error *abi.Error `json:"error"`
		}{c.failed})
		return wasm.Reply{Body: body, Now: c.at}
	}
	result := c.result
	if len(result) == 0 {
		result = json.RawMessage("null")
	}
	return wasm.Reply{Body: append(append([]byte(`{"ok":`), result...), '}'), Now: c.at}
}

// cancelWork cancels the work of the attempt's calls and waits for it, so that nothing
// is recorded after the end of the attempt.
func (a *attempt) cancelWork(cancel context.CancelCauseFunc) {
	cancel(ErrStopped)
	a.work.Wait()
}
