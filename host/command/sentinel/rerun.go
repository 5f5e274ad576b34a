package sentinel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

type retryIn struct {
	Run          string                     `json:"run,omitempty" jsonschema:"the run"`
	SentinelID   string                     `json:"sentinelId,omitempty" jsonschema:"a sentinel: its newest run"`
	From         any                        `json:"from,omitempty" jsonschema:"first step to execute: a top-level place, or a step's id or name; the first one if not given"`
	Iteration    int                        `json:"iteration,omitempty" jsonschema:"iteration to begin with; with from the one where the run ended, else the first" minimum:"1"`
	WithRevision any                        `json:"withRevision,omitempty" jsonschema:"latest, or the number of a revision; the run's own definition if not given"`
	Inputs       map[string]json.RawMessage `json:"inputs,omitempty" jsonschema:"in place of the run's inputs, one by one"`
	Workspace    string                     `json:"workspace,omitempty" jsonschema:"folder that the new run works in, for persons; that of the run if not given"`
	Key          string                     `json:"key,omitempty" jsonschema:"idempotency key: a repeated start with it returns the first run"`
	forceIn
}

// rerunOut is a run that was made from another one.
type rerunOut struct {
	ID         sentinels.RunID  `json:"id" jsonschema:"equal to run"`
	Run        sentinels.RunID  `json:"run"`
	SentinelID sentinels.ID     `json:"sentinelId"`
	Status     sentinels.Status `json:"status"`
	RetryOf    sentinels.RunID  `json:"retryOf"`
	Iteration  int              `json:"iteration,omitempty" jsonschema:"that it begins with; the first if not given"`
	From       string           `json:"from,omitempty" jsonschema:"place of the first step that it executes"`
	Revision   int              `json:"revision,omitempty" jsonschema:"of the stored sentinel; none for a definition of its own"`
}

// retry begins a run's work again, or goes on with it at a step.
func (f family) retry(ctx context.Context, call *command.Call, in retryIn) (rerunOut, error) {
	opt := runtime.ForkOptions{Iteration: in.Iteration, Inputs: in.Inputs, Workspace: in.Workspace, Force: in.Force, Durable: call.Run == ""}
	var err error
	if opt.From, err = fromStep(in.From); err != nil {
		return rerunOut{}, err
	}
	if opt.Latest, opt.Revision, err = withRevision(in.WithRevision); err != nil {
		return rerunOut{}, err
	}
	return f.rerun(ctx, call, targetIn{in.Run, in.SentinelID}, opt)
}

// fromStep reads the place of a step, which may come as a number, or its id or
// name.
func fromStep(v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case float64:
		if v == float64(int(v)) {
			return strconv.Itoa(int(v)), nil
		}
	}
	return "", &abi.Error{Code: abi.BadFields, Field: "from", Message: fmt.Sprintf("from: %v is no place, id or name of a step", v)}
}

// withRevision reads a number, however a command line or a model wrote it.
func withRevision(v any) (latest bool, revision int, err error) {
	switch v := v.(type) {
	case nil:
		return false, 0, nil
	case float64:
		if revision = int(v); v == float64(revision) && revision > 0 {
			return false, revision, nil
		}
	case string:
		if v == "latest" {
			return true, 0, nil
		}
		if revision, err := strconv.Atoi(v); err == nil && revision > 0 {
			return false, revision, nil
		}
	}
	return false, 0, &abi.Error{Code: abi.BadFields, Field: "withRevision", Message: fmt.Sprintf("withRevision: %v is no revision", v), Hint: `give "latest" or a number from 1`}
}

type forkIn struct {
	Run        string                     `json:"run,omitempty" jsonschema:"the run"`
	SentinelID string                     `json:"sentinelId,omitempty" jsonschema:"a sentinel: its newest run"`
	Iteration  int                        `json:"iteration" jsonschema:"iteration to begin with" minimum:"1"`
	From       any                        `json:"from,omitempty" jsonschema:"first step to execute in it; the first one if not given"`
	Index      *int                       `json:"index,omitempty" jsonschema:"place of the step to change, from 0" minimum:"0"`
	Address    string                     `json:"address,omitempty" jsonschema:"the step to change where it is nested, such as 3.then.0, or by its id"`
	Step       json.RawMessage            `json:"step,omitempty" jsonschema:"takes the step's place as a whole"`
	Params     json.RawMessage            `json:"params,omitempty" jsonschema:"merged into the params of a command step, into the fields of any other; null takes a field away"`
	Inputs     map[string]json.RawMessage `json:"inputs,omitempty" jsonschema:"in place of the run's inputs, one by one"`
	Workspace  string                     `json:"workspace,omitempty" jsonschema:"folder that the new run works in, for persons; that of the run if not given"`
	Key        string                     `json:"key,omitempty" jsonschema:"idempotency key: a repeated start with it returns the first run"`
	forceIn
}

// fork begins an iteration of a run again in a new one, with a step changed if
// that is wanted. The sentinel and the other run stay as they are.
func (f family) fork(ctx context.Context, call *command.Call, in forkIn) (rerunOut, error) {
	opt := runtime.ForkOptions{Iteration: in.Iteration, Inputs: in.Inputs, Workspace: in.Workspace, Force: in.Force, Durable: call.Run == ""}
	var err error
	if opt.From, err = fromStep(in.From); err != nil {
		return rerunOut{}, err
	}
	place := stepIn{Index: in.Index, Address: in.Address}
	named := in.Index != nil || in.Address != ""
	switch changes := in.Step != nil || in.Params != nil; {
	case in.Step != nil && in.Params != nil:
		return rerunOut{}, &abi.Error{Code: abi.BadFields, Message: "fork: give either params or step"}
	case changes && !named:
		return rerunOut{}, &abi.Error{Code: abi.BadFields, Message: "fork: no step is named to change", Hint: "give index or address"}
	case named && !changes:
		return rerunOut{}, &abi.Error{Code: abi.BadFields, Message: "fork: a step is named and nothing to change in it", Hint: "give params or step; to begin with a step, give from"}
	case changes:
		opt.Edit = func(d *sentinels.Definition) (*sentinels.Definition, error) {
			return f.changed(d, place, in.Step, in.Params)
		}
	}
	return f.rerun(ctx, call, targetIn{in.Run, in.SentinelID}, opt)
}

// changed returns d with one step replaced or patched.
func (f family) changed(d *sentinels.Definition, in stepIn, whole, params json.RawMessage) (*sentinels.Definition, error) {
	at, err := in.place(d, false)
	if err != nil {
		return nil, err
	}
	var step *sentinels.Step
	if whole != nil {
		step, err = f.step(whole, "step")
	} else {
		var old *sentinels.Step
		if old, err = d.StepAt(at); err != nil {
			return nil, badAddress(err)
		}
		step, err = f.patched(old, params)
	}
	if err != nil {
		return nil, err
	}
	next, err := d.ReplaceStep(at, *step)
	return next, badAddress(err)
}

func (f family) rerun(ctx context.Context, call *command.Call, in targetIn, opt runtime.ForkOptions) (rerunOut, error) {
	old, err := f.target(in, true)
	if err != nil {
		return rerunOut{}, err
	}
	if err := f.notHeldBack(call, old, true); err != nil {
		return rerunOut{}, err
	}
	if err := (forceIn{opt.Force}).allowed(call, old.Sentinel); err != nil {
		return rerunOut{}, err
	}
	if opt.Workspace, err = f.movedTo(call, old, opt.Workspace); err != nil {
		return rerunOut{}, err
	}
	if len(opt.Inputs) > 0 && setsInputsOnly(call) {
		used, err := f.rt.RunDefinition(old.ID)
		if err != nil {
			return rerunOut{}, err
		}
		if err := mayName(used.Definition, used.Within, "inputs", opt.Inputs); err != nil {
			return rerunOut{}, err
		}
	}
	opt.By, opt.AskAgain, opt.Within = string(call.By), call.By != command.ByUser, call.Bound()
	opt.Key, opt.Over = call.Key, func(r runtime.RunInfo) error { return f.mayStop(call, r) }
	if call.ForAgent() {
		opt.As = call.Who() // else the steps of the fork would be those of the starter of the other run
	}
	id, err := f.rt.Fork(ctx, old.ID, opt)
	var problems sentinels.Problems
	if errors.As(err, &problems) { // of the changed step, such as an id that another one has
		return rerunOut{}, refused(problems)
	}
	if err != nil {
		return rerunOut{}, err
	}
	info, err := f.rt.Status(id)
	return rerunOut{id, id, info.Sentinel, info.Status, info.RetryOf, info.RetryIteration, info.RetryFrom, info.Revision}, err
}
