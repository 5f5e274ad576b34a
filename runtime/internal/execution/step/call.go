package step

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// # Host calls
//
// A guest asks the host for everything that it does. The states of a call:
//
//	request          handleHostCall: a call that is recorded is answered at once,
//	                 or once its work is done
//	refused          denied, or a malformed request: recorded with its error
//	started          call.start is enqueued, unless the call only reads or writes
//	                 the store; an effect outside the store begins when that is
//	                 durable
//	working          a goroutine of the run does the work; the guest waits in
//	                 memory, or is parked and executed again later
//	                 (await.go)
//	ended            call.end is enqueued, and the guest gets the answer
//	in doubt         call.start is there and call.end is not, after a crash
//	                 (indoubt.go)
//
// [hostFunctionOf] has a row for each host function. What it does is in the file
// call_NAME.go.

// A hostFunction is how the calls of one host function are handled.
type hostFunction struct {
	// start begins a new call. It may end the call at once.
	start func(a *attempt, ctx context.Context, c *call) error
	// work is what a call does that has a start and takes time. A call that a crash
	// interrupted does it again, or is in doubt if it acts outside the store. Nil: the
	// call ends in the commit in which it starts, so no crash interrupts it.
	work func(a *attempt, ctx context.Context, c *call) (callEnd, error)
	// resume prepares a call that a crash interrupted, before its work. Nil: nothing
	// is to be done.
	resume func(a *attempt, c *call)
	// permitted: a plugin needs a permission for it, which it may have lost when the
	// call is resumed.
	permitted bool
	// repeatable: a call that a crash interrupted is made again without a decision,
	// even if it acts outside the store.
	repeatable bool
	// label is what people read before the label of a call. Default: the name of the
	// host function, and no label.
	label string
}

// hostFunctionOf returns the row of a host function; ok is false for one that this
// host does not have.
func hostFunctionOf(name string) (f hostFunction, ok bool) {
	switch name {
	case abi.FuncEval:
		f = hostFunction{start: immediate((*attempt).callEval)}
	case abi.FuncVar:
		f = hostFunction{start: immediate((*attempt).callVar)}
	case abi.FuncNow:
		f = hostFunction{start: immediate((*attempt).callNow)}
	case abi.FuncSpawn:
		f = hostFunction{start: immediate((*attempt).callSpawn)}
	case abi.FuncEmit:
		f = hostFunction{start: (*attempt).callEmit}
	case abi.FuncCommand:
		f = hostFunction{start: (*attempt).startCommand, work: (*attempt).doCommand, permitted: true, label: "command"}
	case abi.FuncLLM:
		f = hostFunction{start: (*attempt).startLLM, work: (*attempt).doLLM, resume: (*attempt).resumeLLM, permitted: true, label: "a turn of model"}
	case abi.FuncWatch:
		f = hostFunction{start: (*attempt).startWatch, work: (*attempt).doWatch, permitted: true}
	case abi.FuncBlock:
		f = hostFunction{start: (*attempt).startBlock, work: (*attempt).doBlock}
	case abi.FuncWait:
		f = hostFunction{start: (*attempt).startWait, work: (*attempt).doWait, resume: (*attempt).resumeWait}
	case abi.FuncHTTP:
		f = hostFunction{start: (*attempt).startHTTP, work: (*attempt).doHTTP, permitted: true, label: "request"}
	case abi.FuncFile:
		f = hostFunction{start: (*attempt).startFile, work: (*attempt).doFile, permitted: true, repeatable: true}
	default:
		return hostFunction{}, false
	}
	return f, true
}

// instantly makes a start out of what ends at once.
func immediate(do func(*attempt, context.Context, *call) (callEnd, error)) func(*attempt, context.Context, *call) error {
	return func(a *attempt, ctx context.Context, c *call) error {
		end, err := do(a, ctx, c)
		if err == nil {
			a.complete(c, end)
		}
		return err
	}
}

// startCall begins a new call: at once where nothing outside the store is
// touched, else as work of the run.
func (a *attempt) startCall(ctx context.Context, c *call) error {
	if e := a.denied(c); e != nil {
		a.complete(c, callEnd{err: e})
		return nil
	}
	f, ok := hostFunctionOf(c.function)
	if !ok {
		a.complete(c, callEnd{err: errf(abi.NotFound, "this host has no function %q", c.function)})
		return nil
	}
	return f.start(a, ctx, c)
}

// A call is one host call of an attempt: being made, or answered from record.
// Its work belongs to the run and continues when the guest is gone.
type call struct {
	seq      int
	function string
	request  json.RawMessage
	hash     string

	start            *journal.CallStartBody // nil for calls that touch nothing outside
	until            time.Time              // of a wait for nothing but a time
	timeOfDay        bool                   // until is a time of day, not the end of a duration
	command          *CommandRequest        // of a command, once it is read
	working          bool                   // its work is under way in this process
	reservationSpent bool                   // a model call that a crash interrupted, whose reservation is spent
	done             chan struct{}          // closed when the answer is there: the fields below
	result           json.RawMessage        // as the run's state has it
	failed           *abi.Error             // nil if it succeeded
	at               time.Time              // when it ended
}

// A callWork does the work behind a call. An error means that it did not come
// to an end of its own; what the guest is to see goes into callEnd.err.
type callWork func(ctx context.Context, c *call) (callEnd, error)

// callEnd is the result of the work behind a call.
type callEnd struct {
	result json.RawMessage
	err    *abi.Error
	body   journal.CallEndBody // what besides result and error the record needs
	puts   []store.Put         // writes that commit with it
}

// handleHostCall answers one host call of the guest. An error unwinds the guest.
func (a *attempt) handleHostCall(ctx context.Context, function string, request []byte) (wasm.Reply, error) {
	if function == abi.FuncLog {
		if a.countLog(len(request)) {
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
	if err := a.countStored(function, len(request)); err != nil {
		return wasm.Reply{}, err
	}
	a.mu.Lock()
	a.seq++
	seq := a.seq
	c := a.calls[seq]
	a.mu.Unlock()
	if c != nil {
		if c.function != function || c.hash != requestHash(function, request) && !strictjson.Equal(c.request, request) {
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
	// Not under ctx: the work must continue when the guest is unloaded meanwhile.
	if err := a.startCall(a.ctx, c); err != nil {
		return wasm.Reply{}, err
	}
	return a.await(ctx, c)
}

// addCall adds a new call to those that a replay needs, unless they are too many
// or too large.
func (a *attempt) addCall(c *call) error {
	limits := a.svc.Limits
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
			a.address, c.seq, c.function, Clip(c.request), function, Clip(request)),
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

func Clip(b []byte) string {
	const most = 300
	if len(b) > most {
		return string(b[:most]) + "..."
	}
	return string(b)
}
