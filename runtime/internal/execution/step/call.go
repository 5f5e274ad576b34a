package step

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// # Host calls
// A guest does everything outside its memory through host calls. The states of a call:
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
// [hostFunctionOf] has a row for each host function but log and checkpoint, which
// [attempt.handleHostCall] answers itself. Its implementation is in the file
// call_NAME.go.

// A hostFunction describes how the calls of a host function are handled.
type hostFunction struct {
	// start begins a new call. It may end the call at once.
	start func(a *attempt, ctx context.Context, c *call) error
	// work does the part of a call that takes time, after the call's start. A crash
	// interrupts it: the call does it again, or is in doubt if it acts outside the
	// store. Nil: the call ends in start.
	work func(a *attempt, ctx context.Context, c *call) (callEnd, error)
	// resume restores fields of a call that a crash interrupted, before its work. May
	// be nil.
	resume func(a *attempt, c *call)
	// permitted reports that plugins need a permission for the function. It is checked
	// again when a call is resumed.
	permitted bool
	// repeatable reports that an interrupted call is made again without a decision,
	// even if it acts outside the store.
	repeatable bool
	// label is shown before the label of a call. Default: the name of the host
	// function, and no label of the call.
	label string
}

// hostFunctionOf returns the description of a host function; ok is false for an unknown
// one.
func hostFunctionOf(name string) (f hostFunction, ok bool) {
	switch name {
	case abi.FuncEval:
		f = hostFunction{start: immediate((*attempt).callEval)}
	case abi.FuncVar:
		f = hostFunction{start: immediate((*attempt).callVar)}
	case abi.FuncNow:
		f = hostFunction{start: immediate((*attempt).callNow)}
	case abi.FuncSpawn:
		f = hostFunction{start: (*attempt).startSpawn, work: (*attempt).doSpawn}
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

// immediate returns the start of a host function whose calls end at once.
func immediate(do func(*attempt, context.Context, *call) (callEnd, error)) func(*attempt, context.Context, *call) error {
	return func(a *attempt, ctx context.Context, c *call) error {
		end, err := do(a, ctx, c)
		if err == nil {
			a.complete(c, end)
		}
		return err
	}
}

// startCall begins a new call, unless its plugin may not make it.
func (a *attempt) startCall(ctx context.Context, c *call) error {
	if e := a.denied(c); e != nil {
		a.complete(c, callEnd{err: e})
		return nil
	}
	f, ok := hostFunctionOf(c.function)
	if !ok {
		a.complete(c, callEnd{err: failure.New(abi.NotFound, "this host has no function %q", c.function)})
		return nil
	}
	if f.work != nil {
		a.settled()
	}
	return f.start(a, ctx, c)
}

// A call is one host call of an attempt: under way, or answered from records. Its work
// belongs to the run and continues when the guest is unloaded.
type call struct {
	seq      int // number of the call in its attempt, from 1
	function string
	request  json.RawMessage
	outline  *wasm.Outline // of the request, nil if it has no large value or comes from a record
	hash     string

	start            *journal.CallStartBody // nil for a call that ends at once and has no start record
	until            time.Time              // end of a wait for a time; zero for any other call
	timeOfDay        bool                   // until is a time of day rather than the end of a duration
	command          *CommandRequest        // request of a command call, once it is decoded
	working          bool                   // a goroutine of this process does the call's work
	asRun            bool                   // a command whose work is a run of its own
	repeated         bool                   // a crash interrupted the call, and it is made again
	reservationSpent bool                   // the reservation of an interrupted model call was counted as spent
	queue            string                 // what the call waits or waited behind before it began; "" if it did not
	queuedFor        time.Duration          // how long it waited, in active time
	queuedSince      time.Duration          // active time of the run at which its wait began; negative: it does not wait
	done             chan struct{}          // closed when the call is answered and the fields below are set
	result           json.RawMessage        // redacted result, as the journal contains it
	failed           *abi.Error             // error of the call, nil if it succeeded
	at               time.Time              // time of the answer
}

// callWork does the work of a call. Its error means that the work was interrupted; an
// error for the guest is in callEnd.err.
type callWork func(ctx context.Context, c *call) (callEnd, error)

// callEnd is the outcome of a call's work.
type callEnd struct {
	result json.RawMessage
	err    *abi.Error
	body   journal.CallEndBody // further fields of the end record
	puts   []store.Put         // writes that are committed with the end record
}

// handleHostCall answers a host call of the guest. An error ends the guest.
func (a *attempt) handleHostCall(ctx context.Context, function string, request []byte) (wasm.Reply, error) {
	if function == abi.FuncLog {
		if a.countLog(len(request)) {
			return wasm.Reply{Body: []byte(`{"ok":{}}`)}, nil
		}
		return a.callLog(request), nil
	}
	outline := wasm.OutlineOf(ctx)
	if err := checkRequest(request, outline); err != nil {
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
	// The request may be kept, see [wasm.CallFunc].
	c = &call{seq: seq, function: function, request: request, outline: outline, hash: requestHash(function, request), done: make(chan struct{})}
	if function == abi.FuncCheckpoint { // no limit applies to it, because it is what frees calls
		return a.callCheckpoint(c)
	}
	if err := a.addCall(c); err != nil {
		return wasm.Reply{}, err
	}
	// a.ctx rather than ctx: the work continues when the guest is unloaded.
	if err := a.startCall(a.ctx, c); err != nil {
		return wasm.Reply{}, err
	}
	return a.await(ctx, c)
}

// addCall adds a new call to those that a replay needs. It returns an error if they
// would exceed the limits.
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

// notDeterministic returns the error for a guest whose replay makes another request
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

// Clip returns at most 300 bytes of b, for messages.
func Clip(b []byte) string {
	const most = 300
	if len(b) > most {
		return string(b[:most]) + "..."
	}
	return string(b)
}
