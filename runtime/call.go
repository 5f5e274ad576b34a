package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// A call is one host call of an attempt: being made, or answered from record.
// Its work belongs to the run and goes on when the guest is gone.
type call struct {
	seq      int
	function string
	request  json.RawMessage
	hash     string

	start     *journal.CallStartBody // nil for calls that touch nothing outside
	until     time.Time              // of a wait for nothing but a time
	timeOfDay bool                   // until is a time of day, not the end of a duration
	command   *commandRequest        // of a command, once it is read
	working   bool                   // its work is under way in this process
	resumed   bool                   // its work began in a process that is gone
	done      chan struct{}          // closed when body is there
	body      []byte                 // {"ok": ...} or {"error": ...}
	at        time.Time              // when it ended
}

// A performer does the work behind a call. An error means that it did not come
// to an end of its own; what the guest is to see goes into callEnd.err.
type performer func(ctx context.Context, c *call) (callEnd, error)

// callEnd is what the work behind a call came to.
type callEnd struct {
	result json.RawMessage
	err    *abi.Error
	body   journal.CallEndBody // what besides result and error the record needs
	puts   []store.Put         // writes that commit with it
}

// call answers one host call of the guest. It is called by the guest seam; an
// error unwinds the guest.
func (a *attempt) call(ctx context.Context, function string, request []byte) (wasm.Reply, error) {
	if function == abi.FuncLog {
		if a.spendLog(len(request)) {
			return wasm.Reply{Body: []byte(`{"ok":{}}`)}, nil
		}
		return a.callLog(request), nil
	}
	if err := strictjson.Check(request, requestLimits); err != nil {
		// The call is neither numbered nor recorded, because a record is JSON. A
		// replay sends the same request and gets the same answer.
		body, err := json.Marshal(map[string]*abi.Error{"error": abi.New(abi.BadFields, fmt.Sprintf("call %s: request: %v", function, err))})
		return wasm.Reply{Body: body}, err
	}
	if err := a.spend(function, len(request)); err != nil {
		return wasm.Reply{}, err
	}
	a.mu.Lock()
	a.seq++
	seq := a.seq
	c := a.calls[seq]
	a.mu.Unlock()
	if c != nil {
		if c.function != function || c.hash != requestHash(function, request) && !sameJSON(c.request, request) {
			return wasm.Reply{}, a.notDeterministic(c, function, request)
		}
		return a.await(ctx, c)
	}
	// The request is ours to keep: see [wasm.CallFunc].
	c = &call{seq: seq, function: function, request: request, hash: requestHash(function, request), done: make(chan struct{})}
	if function == abi.FuncCheckpoint { // the way out at a limit, so none applies to it
		return a.callCheckpoint(c)
	}
	if err := a.addCall(c); err != nil {
		return wasm.Reply{}, err
	}
	// Not under ctx: the work must go on when the guest is unloaded meanwhile.
	if err := a.startCall(a.ctx, c); err != nil {
		return wasm.Reply{}, err
	}
	return a.await(ctx, c)
}

// addCall adds a new call to those that a replay needs, unless they are too many
// or too large.
func (a *attempt) addCall(c *call) error {
	limits := a.run.rt.limits
	a.mu.Lock()
	defer a.mu.Unlock()
	var text string
	switch size := a.callBytes + int64(len(c.request)); {
	case len(a.calls) >= limits.Calls:
		text = fmt.Sprintf("step %s made %d host calls since its last checkpoint, which is the limit", a.address, len(a.calls))
	case size > limits.CallBytes:
		text = fmt.Sprintf("callBytes: the requests and answers of step %s since its last checkpoint would have %d bytes, the limit is %d", a.address, size, limits.CallBytes)
	default:
		a.calls[c.seq], a.callBytes = c, size
		return nil
	}
	return &abi.Error{Code: abi.Limit, Message: text, Hint: "a plugin that calls " + abi.FuncCheckpoint + " from time to time has no such limit"}
}

// notDeterministic is the error of a guest that, on replay, makes another request
// than the one recorded as call c.
func (a *attempt) notDeterministic(c *call, function string, request []byte) *abi.Error {
	e := &abi.Error{
		Code: abi.Plugin, Permanent: true,
		Message: fmt.Sprintf("plugin is not deterministic: step %s, call %d was %s %s, and is %s %s when it is replayed",
			a.address, c.seq, c.function, clip(c.request), function, clip(request)),
		Hint: "a step's requests may depend only on its input and on the answers it got (sdk/ABI.md, A6.2)",
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.checkpoint != nil {
		e.Message += fmt.Sprintf("; the step was resumed from its checkpoint, call %d", a.checkpoint.Seq)
		e.Hint = "a step whose input has a state continues directly behind the sentinel_checkpoint call that saved it, " +
			"and repeats no call from before it (sdk/ABI.md, A6.17); `sentinel plugin test` checks this"
	}
	return e
}

func clip(b []byte) string {
	const most = 300
	if len(b) > most {
		return string(b[:most]) + "..."
	}
	return string(b)
}

// startCall begins a new call: at once where nothing outside the store is
// touched, else as work of the run.
func (a *attempt) startCall(ctx context.Context, c *call) error {
	if e := a.denied(c); e != nil {
		a.complete(c, callEnd{err: e})
		return nil
	}
	switch c.function {
	case abi.FuncEval:
		return a.instant(ctx, c, a.callEval)
	case abi.FuncVar:
		return a.instant(ctx, c, a.callVar)
	case abi.FuncNow:
		return a.instant(ctx, c, a.callNow)
	case abi.FuncSpawn:
		return a.instant(ctx, c, a.callSpawn)
	case abi.FuncEmit:
		return a.callEmit(c)
	case abi.FuncCommand:
		return a.startCommand(ctx, c)
	case abi.FuncLLM:
		return a.startLLM(ctx, c)
	case abi.FuncWatch:
		return a.startWatch(ctx, c)
	case abi.FuncBlock:
		return a.startBlock(ctx, c)
	case abi.FuncWait:
		return a.startWait(ctx, c)
	case abi.FuncHTTP:
		return a.startHTTP(ctx, c)
	case abi.FuncFile:
		return a.startFile(ctx, c)
	}
	a.complete(c, callEnd{err: errf(abi.NotFound, "this host has no function %q", c.function)})
	return nil
}

// instant makes a call that ends at once.
func (a *attempt) instant(ctx context.Context, c *call, do performer) error {
	end, err := do(ctx, c)
	if err != nil {
		return err
	}
	a.complete(c, end)
	return nil
}

// beginCall writes the start of a call that takes time. An effect outside the store
// must wait for the returned ticket before it starts.
func (a *attempt) beginCall(c *call, body journal.CallStartBody) (ticket, error) {
	body.Seq, body.Function, body.Hash = c.seq, c.function, c.hash
	var err error
	if body.Request, err = a.run.rt.value(c.request); err != nil {
		return nil, err
	}
	c.start = &body
	if a.label == "" {
		a.label = body.Label
	}
	t := a.write(!body.Effect, a.n, &journal.Record{Kind: journal.CallStart, CallStart: &body})
	p := a.progress(OnCallStart, a.n)
	p.Function, p.Label = c.function, body.Label
	t.OnDone(func(error) { a.run.tell(p) })
	return t, nil
}

// perform runs the work behind a call on a goroutine of the run. It records the
// answer itself, so it does not matter whether the guest is still there.
func (a *attempt) perform(ctx context.Context, c *call, durable ticket, do performer) {
	c.working = true
	a.run.work.Add(1)
	a.work.Add(1)
	if durable != nil {
		a.run.rt.effects.begin()
	}
	go a.carry(ctx, c, durable, do)
}

// carry is the goroutine behind a call. What it blocks in for long has small
// frames, since ten thousand of them may wait.
func (a *attempt) carry(ctx context.Context, c *call, durable ticket, do performer) {
	defer a.run.work.Done()
	defer a.work.Done()
	started := time.Now()
	if durable != nil {
		defer a.run.rt.effects.end()
		if !a.durable(ctx, c, durable) {
			return
		}
	}
	a.run.rt.calendar.sleep(ctx, c)
	a.finish(ctx, c, do, started)
}

// durable waits until the start of a call is in the journal for good; false
// means that the call will not be made.
func (a *attempt) durable(ctx context.Context, c *call, t ticket) bool {
	err := t.Wait(ctx)
	if err == nil {
		return true
	}
	// At the end of the run it never began, and a resumed run asks again.
	if !over(ctx) {
		a.complete(c, callEnd{err: asError(err, abi.Internal)})
	}
	return false
}

// finish executes the work and records its result.
func (a *attempt) finish(ctx context.Context, c *call, do performer, started time.Time) {
	end, err := do(ctx, c)
	// When the process or the run ends the call stays as it is, without an end.
	// The end of the process reaches runs one after the other, so a child may have
	// heard of it, and told so, before ctx has.
	if err != nil && (over(ctx) || errors.Is(err, errShutdown)) {
		return
	}
	if err != nil && end.err == nil {
		end.err = asError(err, abi.Internal)
		if cause := context.Cause(ctx); cause != nil && (errors.Is(err, context.Canceled) || errors.Is(err, cause)) {
			end.err = asError(cause, abi.Cancelled)
		}
	}
	p := a.progress(OnCallEnd, a.n)
	p.Function, p.Label, p.Duration, p.Error, p.Usage = c.function, c.start.Label, time.Since(started), end.err, end.body.Usage
	c.tellModel(&p)
	a.complete(c, end).OnDone(func(error) { a.run.tell(p) })
}

// over reports whether ctx ended because the run or the process does.
func over(ctx context.Context) bool {
	cause := context.Cause(ctx)
	var limit *limitError
	return errors.Is(cause, errShutdown) || errors.Is(cause, errStopped) || errors.As(cause, &limit)
}

// complete writes the end of a call and gives the guest its answer, both without
// secrets.
func (a *attempt) complete(c *call, end callEnd) ticket {
	body := end.body
	end.result, end.err = a.run.rt.redact(end.result), a.run.rt.redactError(end.err)
	body.Seq, body.Error = c.seq, end.err
	kept, err := a.run.rt.keep(end.result)
	if err != nil {
		body.Error = asError(err, abi.Internal)
	} else {
		body.Result = kept
	}
	if c.start == nil { // nothing else says what was called, and a replay compares it
		body.Function, body.Hash = c.function, c.hash
		if body.Request, err = a.run.rt.value(c.request); err != nil {
			body.Error = asError(err, abi.Internal)
		}
	}
	a.mu.Lock()
	body.Logs = a.logs
	a.callBytes += int64(len(end.result))
	if isWait(c.function) {
		a.waited = a.run.clock.elapsed()
	}
	a.mu.Unlock()
	rec := &journal.Record{Kind: journal.CallEnd, Time: time.Now().UnixMicro(), CallEnd: &body}
	a.stamp(a.n, rec)
	t := a.run.write(writeOptions{lazy: true, puts: end.puts}, rec)
	c.answer(end.result, body.Error, microTime(rec.Time))
	return t
}

// answer makes the text that the guest reads.
func (c *call) answer(result json.RawMessage, failed *abi.Error, at time.Time) {
	c.at = at
	if failed != nil {
		c.body, _ = json.Marshal(struct {
			Error *abi.Error `json:"error"`
		}{failed})
	} else {
		if len(result) == 0 {
			result = json.RawMessage("null")
		}
		c.body = append(append([]byte(`{"ok":`), result...), '}')
	}
	close(c.done)
}

// await waits for a call's answer. While it waits the guest stays in memory as
// long as it fits; errPark unloads it.
func (a *attempt) await(ctx context.Context, c *call) (wasm.Reply, error) {
	select {
	case <-c.done:
		return wasm.Reply{Body: c.body, Now: c.at}, nil
	default:
	}
	a.run.leave()
	a.holds = false
	if c.waits() {
		a.giveTurn()
	}
	if err := a.stay(ctx, c); err != nil {
		return wasm.Reply{}, err // the guest ends, which takes no slot
	}
	a.rejoin(ctx)
	return wasm.Reply{Body: c.body, Now: c.at}, nil
}

// stay waits for a call's answer with the guest in memory.
func (a *attempt) stay(ctx context.Context, c *call) error {
	longest := a.run.rt.limits.ResidentFor
	if !c.until.IsZero() && c.until.Sub(a.run.rt.calendar.now()) > longest {
		return errPark
	}
	s := a.run.rt.waiting.enter(guestBytes)
	defer a.run.rt.waiting.leave(s)
	timer := time.NewTimer(longest)
	defer timer.Stop()
	select {
	case <-c.done:
		return a.held(ctx, c)
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.park:
	case <-timer.C:
	}
	return errPark
}

// held keeps a step back that has waited, as long as the run is paused. A step
// that was at work goes on to its end, parked or not.
func (a *attempt) held(ctx context.Context, c *call) error {
	if c.function != abi.FuncWait {
		return nil
	}
	return a.run.pass(ctx)
}

// guestBytes is what a waiting guest is taken to hold; a Go guest with an arena
// holds about this much.
const guestBytes = 1500 << 10

// rejoin takes the execution slot again that await gave back. Where that fails
// ctx is over, and the guest ends without one.
func (a *attempt) rejoin(ctx context.Context) {
	a.holds = a.takeTurn(ctx) == nil && a.run.enter(ctx) == nil
}

// settle makes sure that the guest, when it runs next, finds its last call
// answered: it waits for calls under way and resumes those that a crash cut off.
func (a *attempt) settle(ctx context.Context) error {
	open := a.openCall()
	if open == nil {
		return nil
	}
	if !open.working {
		if err := a.resumeCall(ctx, open); err != nil {
			return err
		}
	}
	if open.waits() {
		a.giveTurn()
	}
	if err := answered(ctx, open); err != nil {
		return err
	}
	return a.held(ctx, open)
}

// openCall returns the call that has no answer yet; nil if there is none.
func (a *attempt) openCall() (open *call) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.calls {
		select {
		case <-c.done:
		default:
			open = c
		}
	}
	return open
}

func answered(ctx context.Context, c *call) error {
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// abandon ends what is left of the attempt's work, so that nothing of it is
// recorded after its end.
func (a *attempt) abandon(cancel context.CancelCauseFunc) {
	cancel(errStopped)
	a.work.Wait()
}
