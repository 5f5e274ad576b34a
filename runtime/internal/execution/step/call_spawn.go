package step

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/reference"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

type spawnRequest struct {
	Field    string          `json:"field"`
	Sentinel string          `json:"sentinel"`
	Inputs   json.RawMessage `json:"inputs"`
}

// startSpawn handles a call of ABI clause A6.9. It ends at once, unless the child waits to begin.
func (a *attempt) startSpawn(ctx context.Context, c *call) error {
	begun, ok, err := a.run.AdmitChild(a.attemptKey(c))
	if err != nil {
		return err
	}
	if !ok {
		return a.beginCall(ctx, c, journal.CallStartBody{Safe: true})
	}
	defer begun()
	end, err := a.spawn(ctx, c)
	if err == nil {
		a.complete(c, end)
	}
	return err
}

// doSpawn starts the child when it may begin. A crash may have come after its start.
func (a *attempt) doSpawn(ctx context.Context, c *call) (callEnd, error) {
	begun, ok, err := a.run.AdmitChild(a.attemptKey(c))
	if err == nil && !ok {
		err = a.queue(c)(ctx, a.run.ChildWait(), func() (err error) {
			begun, err = a.run.AwaitChildStart(ctx)
			return err
		})
	}
	if err != nil {
		return callEnd{}, err
	}
	defer begun()
	if err := a.run.Enter(ctx); err != nil {
		return callEnd{}, err
	}
	defer a.run.Leave()
	return a.spawn(ctx, c)
}

// spawn starts the child of a call. Its start key is derived from the call and the numbers of the enclosing
// attempts: a call that is repeated after a crash finds its child, and a new attempt of the step starts another
// one.
func (a *attempt) spawn(ctx context.Context, c *call) (callEnd, error) {
	var req spawnRequest
	if e := parse(c, &req); e != nil {
		return callEnd{err: e}, nil
	}
	opt := ChildOptions{Key: a.attemptKey(c)}
	def, stored, inline, e := a.childDefinition(req.Field, req.Sentinel)
	if e != nil {
		return callEnd{err: e}, nil
	}
	opt.Revision = stored
	if len(req.Inputs) > 0 && string(req.Inputs) != "null" {
		if err := json.Unmarshal(req.Inputs, &opt.Inputs); err != nil {
			return callEnd{err: failure.New(abi.BadFields, "invalid inputs: want an object")}, nil
		}
	}
	identity := def.ID
	if inline {
		// No stored sentinel can have this identity, because an id has no "@".
		identity = a.run.Start().Sentinel + "@" + sentinels.ID(a.address)
		opt.Inherit, opt.Identity = a.sc, identity
		if opt.Workspace, e = a.workspaceOf(def); e != nil {
			return callEnd{err: e}, nil
		}
	}
	opt.Drafted = isString(a.step.Fields[req.Field])
	id, err := a.run.StartChild(ctx, def, opt)
	if err != nil {
		if RunEnding(ctx) {
			return callEnd{}, context.Cause(ctx)
		}
		if errors.Is(err, ErrShutdown) { // ctx is about to end
			return callEnd{}, err
		}
		return callEnd{err: failure.From(err, abi.Internal)}, nil
	}
	end, err := reply(map[string]any{"run": id, "sentinel": identity})
	end.body.Child = id
	return end, err
}

// workspaceOf returns the workspace of an inline definition with its references resolved,
// such as the folder that a step before made. A reference without a value is an error: the
// run must not work in another folder than the one that was meant.
func (a *attempt) workspaceOf(def *sentinels.Definition) (string, *abi.Error) {
	dir, notes, err := reference.ResolveText(def.Workspace, a.run.Lookup(a.sc, a.retry))
	if none := append(notes.Unset, notes.Unknown...); err == nil && len(none) > 0 {
		err = fmt.Errorf("%s has no value", none[0])
	}
	if err != nil {
		return "", &abi.Error{Code: abi.BadFields, Permanent: true, Field: "workspace", Message: fmt.Sprintf("workspace of the child run: %v", err)}
	}
	return dir, nil
}

// childDefinition returns the definition to start: one that is written in the step's
// field, one that the field refers to, or the stored one with the given id.
func (a *attempt) childDefinition(field, id string) (def *sentinels.Definition, revision int, inline bool, e *abi.Error) {
	if field != "" {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(a.fields, &fields); err != nil {
			return nil, 0, false, failure.From(err, abi.Internal)
		}
		raw, ok := fields[field]
		if !ok {
			return nil, 0, false, failure.New(abi.BadFields, "step %s has no field %q", a.address, field)
		}
		if id = storedID(raw); id == "" {
			if !isString(a.step.Fields[field]) { // written in the step: it was checked with the definition around it
				def, _, err := a.svc.Definitions.DecodeStored(raw, sentinels.ID(a.address+"."+field))
				if err != nil {
					return nil, 0, false, &abi.Error{Code: abi.BadFields, Field: field, Message: err.Error()}
				}
				return def, 0, true, nil
			}
			def, problems := a.svc.Definitions.Decode(raw, a.address+"."+field)
			if len(problems) > 0 {
				return nil, 0, false, &abi.Error{Code: abi.BadFields, Field: field, Message: problems.Error()}
			}
			return def, 0, true, nil
		}
	}
	if kept, ok := a.run.Start().Named[sentinels.ID(id)]; ok {
		if kept.IsRedacted() {
			return nil, 0, false, RedactedError(sentinels.ID(id))
		}
		raw, err := a.svc.Values.Load(kept)
		if err != nil {
			return nil, 0, false, failure.From(err, abi.Internal)
		}
		def, problems := a.svc.Definitions.Decode(raw, id)
		if len(problems) > 0 {
			return nil, 0, false, &abi.Error{Code: abi.BadFields, Field: field, Permanent: true, Message: problems.Error()}
		}
		return def, 0, false, nil
	}
	stored, err := a.svc.Definitions.Get(sentinels.ID(id))
	if err != nil {
		e := *failure.From(err, abi.Internal)
		if e.Code == abi.NotFound { // another attempt would not find it either
			e.Permanent = true
			e.Hint = cmp.Or(e.Hint, "store it with `sentinel create FILE`, then `sentinel retry RUN`")
		}
		return nil, 0, false, &e
	}
	def, err = a.svc.Definitions.Decoded(stored)
	if err != nil {
		return nil, 0, false, failure.From(err, abi.BadFields)
	}
	return def, stored.Revision, false, nil
}

// A childResult is the result of a child run as the awaiting step reads it.
type childResult struct {
	Success    bool                       `json:"success"`
	Status     sentinels.Status           `json:"status"`
	Run        sentinels.RunID            `json:"run"`
	Iterations int                        `json:"iterations"`
	Output     json.RawMessage            `json:"output,omitempty"`
	Variables  map[string]json.RawMessage `json:"variables"`
	Error      *abi.Error                 `json:"error,omitempty"`
}

// forParent returns a run's result for its parent. It is a success if the run is
// completed and its output does not contain "success": false.
func forParent(res run.Result) childResult {
	var output struct {
		Success *bool `json:"success"`
	}
	reportsFailure := strictjson.DecodeForeign(res.Output, &output) == nil && output.Success != nil && !*output.Success
	return childResult{
		Success: res.Status == sentinels.StatusCompleted && !reportsFailure, Status: res.Status, Run: res.Run,
		Iterations: res.Iterations, Output: res.Output, Variables: res.Variables, Error: res.Error,
	}
}

// RedactedError is the error for a definition that is recorded without a secret only.
func RedactedError(id sentinels.ID) *abi.Error {
	return &abi.Error{
		Code: abi.Conflict, Permanent: true, Message: fmt.Sprintf("the definition of %q contains the value of a secret, which the record of the run does not have: it cannot be executed from there", id),
		Hint: `start a new run; write {"secret": "NAME"} in "env" in place of the value`,
	}
}
