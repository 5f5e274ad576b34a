package step

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/external"
	"github.com/sentinel-runtime/sentinel/runtime/internal/document"
	"github.com/sentinel-runtime/sentinel/runtime/internal/eventlog"
	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels/reference"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// A CommandRequest is the request of a command call.
type CommandRequest struct {
	Command string          `json:"command"`
	Params  json.RawMessage `json:"params"`
	By      string          `json:"by"`
	Tools   []string        `json:"tools"`
}

// startCommand begins a call of ABI clause A6.3. A command that only reads starts at
// once. One that writes only documents commits them with its answer. Any other one
// starts when its start record is durable.
func (a *attempt) startCommand(ctx context.Context, c *call) error {
	req, e := c.commandRequest()
	if e != nil {
		a.complete(c, callEnd{err: e})
		return nil
	}
	if a.svc.Commands == nil {
		a.complete(c, callEnd{err: failure.New(abi.Unavailable, "command %q: this host provides no commands", req.Command)})
		return nil
	}
	info, known := a.svc.Commands.Lookup(req.Command)
	if known && info.InStore {
		return a.storeCommand(ctx, c, *req, info)
	}
	info.ReadOnly = info.ReadOnly || info.OnlyReads(req.Params)
	a.setAsRun(c, info.AsRun)
	effect := known && !info.ReadOnly && !info.AsRun // what a run has begun is in its own journal
	return a.beginCall(ctx, c, journal.CallStartBody{Effect: effect, Safe: info.MayRepeat(req.Params), Label: req.Command})
}

// setAsRun sets whether the work of a call is a run. The timer of the attempt reads it.
func (a *attempt) setAsRun(c *call, asRun bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c.asRun = asRun
}

// commandRequest returns the request of a command call. It is decoded once, when the
// call is made or resumed. It is not safe for concurrent use; the stages of a call use
// it one after the other.
func (c *call) commandRequest() (*CommandRequest, *abi.Error) {
	if c.command == nil {
		req := new(CommandRequest)
		if e := parseOutline(c, req); e != nil {
			return nil, e
		}
		req.Params = c.outline.Insert(req.Params)
		c.command = req
	}
	return c.command, nil
}

// model returns "model" if a model calls the command, "" for the step itself.
func (req *CommandRequest) model() string {
	if req.By == "model" {
		return req.By
	}
	return ""
}

// doCommand calls the command.
func (a *attempt) doCommand(ctx context.Context, c *call) (callEnd, error) {
	req, e := c.commandRequest()
	if e != nil {
		return callEnd{err: e}, nil
	}
	if c.repeated {
		if end, ok, err := a.attachCommand(ctx, c); ok || err != nil {
			return end, err
		}
	}
	work, leave, err := a.enterWork(ctx, c)
	if err != nil {
		return callEnd{}, err
	}
	defer leave()
	var out json.RawMessage
	count := a.run.Emission(req.model())
	command := a.commandCall(ctx, c, *req, nil)
	command.Queue = a.queue(c)
	err = a.waitForFiles(ctx, req.Command, func() (err error) {
		out, err = a.svc.Commands.Call(eventlog.WithEmission(work, count), command)
		return err
	})
	if err != nil && ctx.Err() != nil {
		return callEnd{body: journal.CallEndBody{Emitted: count.Total()}}, err
	}
	end := a.commandEnd(out, err)
	end.body.Emitted = count.Total()
	return end, nil
}

// attachCommand waits for the run of a command that a plugin provides, if the call had
// started it before a crash. The command itself may be gone with its plugin; the run
// continues with the module that it began with.
func (a *attempt) attachCommand(ctx context.Context, c *call) (callEnd, bool, error) {
	id, ok, err := a.run.FindRun(RunKey(a.attemptKey(c), ""))
	if err != nil || !ok {
		return callEnd{}, false, err
	}
	a.setAsRun(c, true)
	out, err := a.run.AwaitStep(ctx, id)
	if err != nil && ctx.Err() != nil {
		return callEnd{}, true, err
	}
	return a.commandEnd(out, err), true, nil
}

// commandEnd returns the outcome of a command; a result that is too large for a guest
// becomes an error. The warning of a result is logged, as a step may read only other parts of it.
func (a *attempt) commandEnd(out json.RawMessage, err error) callEnd {
	if err != nil {
		return callEnd{err: failure.From(err, abi.Internal)}
	}
	if len(out) > maxMessage {
		return callEnd{err: &abi.Error{
			Code: abi.Limit, Message: fmt.Sprintf("the result of the command has %d bytes, the limit is %d", len(out), maxMessage),
			Hint: "ask for less: most commands take a limit, an offset or a path",
		}}
	}
	if warning := warningOf(out); warning != "" {
		a.log("warn", warning)
	}
	return callEnd{result: out}
}

// warningOf returns the warning in the result of a command, "" without one. A result without
// its name is not decoded.
func warningOf(out json.RawMessage) string {
	var fields struct {
		Warning string `json:"warning"`
	}
	if !bytes.Contains(out, []byte(`"warning"`)) || strictjson.DecodeForeign(out, &fields) != nil {
		return ""
	}
	return fields.Warning
}

// maxMessage is the maximum size of a request or an answer in bytes, ABI clause A8: a value of
// 16 MiB, the most that FORMAT.md F6.7 allows, and what is around it.
const maxMessage = 17 << 20

// commandCall returns the call that the host receives. tx is nil unless the command
// writes documents.
func (a *attempt) commandCall(ctx context.Context, c *call, req CommandRequest, tx *document.Tx) external.CommandCall {
	deadline, _ := ctx.Deadline()
	if len(req.Params) == 0 || string(req.Params) == "null" {
		req.Params = json.RawMessage("{}")
	}
	within := a.run.Within()
	if within == nil && a.drafted(req) {
		within = append([]string{"*"}, a.run.NamedCommands()...)
	}
	environment := a.run.Definition().Environment()
	environment.Secrets, environment.Origin = a.step.Secrets(), a.step.Origin()
	return external.CommandCall{
		Command: req.Command, Params: req.Params, ByModel: req.model() != "", Tools: a.modelTools(), Within: within, Repeated: c.repeated,
		Run: a.run.ID(), Root: a.run.Start().Root, Sentinel: a.run.Start().Sentinel, As: a.run.As(), Path: a.path, StepName: a.shownName(), Iteration: a.run.Iteration(), Attempt: a.n, Key: a.callKey(c),
		Workspace: a.run.Start().Workspace, Env: a.commandEnv(), Environment: environment, Deadline: deadline, Documents: tx,
	}
}

// drafted reports whether a call gives a definition that the step does not write itself: one with
// the value of a variable in it, or that of a plugin. It may come from a model, so it is bounded as
// the definition of a step is that is such a value.
func (a *attempt) drafted(req CommandRequest) bool {
	defines := a.svc.CommandInfo(req.Command).Defines
	if len(defines) == 0 {
		return false
	}
	var given, written map[string]json.RawMessage
	_ = json.Unmarshal(req.Params, &given)                // no object is refused by the command
	_ = json.Unmarshal(a.step.Fields["params"], &written) // a reference writes nothing
	none := func(string) (json.RawMessage, bool) { return nil, false }
	for _, name := range defines {
		if given[name] == nil {
			continue
		}
		literal, _, err := reference.Resolve(written[name], none)
		if err != nil || !strictjson.Equal(literal, given[name]) {
			return true
		}
	}
	return false
}

// commandEnv returns the environment of processes that the step starts: the variables
// of its shell lines and the ids of the step.
func (a *attempt) commandEnv() map[string]string {
	env := map[string]string{
		"SENTINEL_RUN": string(a.run.ID()), "SENTINEL_STEP": a.path, "SENTINEL_IDEMPOTENCY_KEY": a.key(),
	}
	for k, v := range a.env {
		env[k] = v
	}
	return env
}

// storeCommand calls a command that reads or writes only documents. Its writes and the call's
// end are one commit, so it is never in doubt.
func (a *attempt) storeCommand(ctx context.Context, c *call, req CommandRequest, info external.CommandInfo) error {
	if a.label == "" {
		a.label = req.Command
	}
	started := time.Now()
	body := journal.CallEndBody{Label: req.Command}
	count := a.run.Emission(req.model())
	var end callEnd
	var done *store.Ticket
	work := func(tx *document.Tx) error {
		out, err := a.svc.Commands.Call(eventlog.WithEmission(ctx, count), a.commandCall(ctx, c, req, tx))
		if err != nil {
			return err
		}
		if end = a.commandEnd(out, nil); end.err != nil {
			return end.err
		}
		end.body = body
		end.body.Emitted = count.Total()
		return nil
	}
	owner := cmp.Or(a.run.EmitsFor(), req.model())
	var err error
	if info.ReadOnly {
		if err = a.svc.Documents.View(ctx, work); err == nil {
			done = a.complete(c, end)
		}
	} else {
		err = a.svc.Documents.Transact(document.WithOwner(ctx, owner), work, func(puts []store.Put) *store.Ticket {
			end.puts = puts
			done = a.complete(c, end)
			return done
		})
	}
	if done == nil { // the command failed, nothing was written
		count.Revoke()
		if RunEnding(ctx) {
			return context.Cause(ctx)
		}
		done = a.complete(c, callEnd{err: failure.From(err, abi.Internal), body: body})
		err = nil
	}
	p := a.progress(run.OnCallEnd, a.n)
	p.Function, p.Label, p.Duration = c.function, req.Command, time.Since(started)
	c.addModelCall(&p)
	done.OnDone(func(error) { a.run.Report(p) })
	return err
}

// Bounds of what a progress report has of a call of a model, in bytes: of its parameters and
// of its result, and of one field of a larger result.
const (
	maxProgressParams = 4 << 10
	maxProgressField  = 256
)

// addModelCall adds the parameters and the result of a command that a model called to a
// progress report. A call without its answer has no result.
func (c *call) addModelCall(p *run.Progress) {
	if c.function != abi.FuncCommand {
		return
	}
	req, e := c.commandRequest()
	if e != nil || req.model() == "" {
		return
	}
	p.ByModel = true
	if len(req.Params) <= maxProgressParams {
		p.Params = req.Params
	}
	p.Output = shortResult(c.result)
}

// shortResult returns a result, or the short fields of one that is too large for a report;
// nil if it has none.
func shortResult(result json.RawMessage) json.RawMessage {
	if len(result) <= maxProgressParams {
		return result
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(result, &fields) != nil {
		return nil
	}
	maps.DeleteFunc(fields, func(_ string, value json.RawMessage) bool { return len(value) > maxProgressField })
	short, err := json.Marshal(fields)
	if err != nil || len(fields) == 0 || len(short) > maxProgressParams {
		return nil
	}
	return short
}
