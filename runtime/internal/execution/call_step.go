package execution

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/sentinel-runtime/sentinel/runtime/external"
	"github.com/sentinel-runtime/sentinel/runtime/internal/execution/step"
	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// CallStep is Runtime.CallStep of package runtime.
func (ex *Executor) CallStep(ctx context.Context, c run.StepCall) (json.RawMessage, error) {
	src, variables, err := ex.stepDefinition(c)
	if err != nil {
		return nil, err
	}
	// Calls with the same fields have the same text, which is decoded once. The plugin is not
	// asked about it: it would only see references.
	def, _, err := ex.opt.Definitions.DecodeStored(src, "")
	if err != nil {
		return nil, callProblem(c, err)
	}
	within := c.Within
	if within != nil { // what the plugin of the step is granted is what its callers may have it use
		within = append(slices.Clone(within), external.TypeEntry(c.Type))
	}
	opt := startOptions{
		StartOptions: run.StartOptions{Variables: variables, Workspace: c.Workspace, Key: given(c.Key), OnInterrupt: c.OnInterrupt, As: c.As, Within: within},
		called:       true,
	}
	name := cmp.Or(c.Name, string(c.Type))
	opt.identity = sentinels.ID("call@" + name) // no stored sentinel has an id with "@"
	caller := step.CallerOf(ctx)
	if caller != nil {
		parent, err := ex.caller(caller)
		if err != nil {
			return nil, fmt.Errorf("call step %q: %w", c.Type, err)
		}
		opt.parent, opt.identity = parent, parent.begin.Sentinel+"@"+sentinels.ID(name)
		opt.Workspace = cmp.Or(opt.Workspace, parent.begin.Workspace)
		opt.Key = step.RunKey(caller.Key, c.Part)
	}
	begun := func() {}
	if caller != nil {
		if begun, err = admitCalled(ctx, caller, opt); err != nil {
			return nil, err
		}
	}
	id, err := ex.startRun(ctx, def, opt)
	begun()
	if err != nil {
		return nil, err
	}
	if caller == nil {
		return ex.awaitCall(ctx, id)
	}
	var out json.RawMessage
	err = caller.Outside(ctx, func() (err error) {
		out, err = opt.parent.AwaitStep(ctx, id)
		return err
	})
	return out, err
}

// admitCalled waits until the run of a caller may start a child for a called step.
func admitCalled(ctx context.Context, caller *step.Caller, opt startOptions) (begun func(), err error) {
	begun, ok, err := opt.parent.AdmitChild(opt.Key)
	if err == nil && !ok {
		err = caller.Queue(ctx, opt.parent.ChildWait(), func() (err error) {
			begun, err = opt.parent.AwaitChildStart(ctx)
			return err
		})
	}
	return begun, err
}

// CheckCall is Runtime.CheckCall of package runtime.
func (ex *Executor) CheckCall(c run.StepCall) error {
	src, _, err := ex.stepDefinition(c)
	if err != nil {
		return err
	}
	if _, problems := ex.svc.Definitions.Decode(src, ""); len(problems) > 0 {
		return callProblem(c, problems)
	}
	return nil
}

// callProblem is the error of a call whose step type or fields are wrong.
func callProblem(c run.StepCall, err error) error {
	e := &abi.Error{Code: abi.BadFields, Permanent: true, Message: fmt.Sprintf("call step %q: %v", c.Type, err)}
	var problems sentinels.Problems
	if errors.As(err, &problems) && len(problems) > 0 {
		e.Message, e.Hint = fmt.Sprintf("call step %q: %s", c.Type, problems[0].Message), problems[0].Hint
	}
	return e
}

// stepDefinition returns the text of a definition with the called step as its only one, and the
// variables that it starts with. Each field is a reference to a variable, so that nothing in
// its value is read as a reference, a command or a nested step.
func (ex *Executor) stepDefinition(c run.StepCall) (src []byte, values map[string]json.RawMessage, err error) {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(c.Fields, &fields); err != nil || fields == nil {
		return nil, nil, &abi.Error{Code: abi.BadFields, Permanent: true, Message: fmt.Sprintf("call step %q: want an object with its fields", c.Type)}
	}
	only := map[string]any{"type": c.Type}
	if c.Timeout > 0 {
		only["timeoutMs"] = c.Timeout.Milliseconds()
	}
	declared := map[string]any{}
	values = map[string]json.RawMessage{}
	for i, name := range slices.Sorted(maps.Keys(fields)) {
		if slices.Contains(ofEveryStep, name) {
			return nil, nil, &abi.Error{Code: abi.BadFields, Permanent: true, Field: name, Message: fmt.Sprintf("call step %q: field %q belongs to the host", c.Type, name)}
		}
		variable := fmt.Sprintf("field_%d", i)
		only[name], declared[variable], values[variable] = "$"+variable, nil, ex.svc.Redact.JSON(fields[name])
	}
	src, err = json.Marshal(map[string]any{"name": cmp.Or(c.Name, string(c.Type)), "variables": declared, "steps": []any{only}})
	return src, values, err
}

// ofEveryStep are the fields that every step has, which a caller cannot set.
var ofEveryStep = []string{"type", "id", "name", "condition", "outputTo", "parse", "onError", "timeoutMs", "onInterrupt"}

// awaitCall waits for a called step without a run that calls. If ctx ends before, the run is
// stopped, and has ended when awaitCall returns.
func (ex *Executor) awaitCall(ctx context.Context, id sentinels.RunID) (json.RawMessage, error) {
	res, err := ex.Await(ctx, id)
	if err != nil {
		if ctx.Err() != nil {
			_ = ex.StopRun(context.WithoutCancel(ctx), id, run.StopOptions{}) // it has ended meanwhile, or the runtime closes
		}
		return nil, err
	}
	return stepOutput(res)
}

// AwaitStep implements [step.Children].
func (r *liveRun) AwaitStep(ctx context.Context, id sentinels.RunID) (json.RawMessage, error) {
	res, err := r.AwaitRun(ctx, id)
	switch {
	case errors.Is(err, step.ErrShutdown):
		// Runs are released one after the other, and this one is next. Its caller would
		// take the error for one of the command.
		<-ctx.Done()
		return nil, err
	case err != nil:
		if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, step.ErrShutdown) {
			r.StopRun(id, cause)
		}
		return nil, err
	}
	return stepOutput(res)
}

// FindRun implements [step.Children].
func (r *liveRun) FindRun(key string) (sentinels.RunID, bool, error) { return r.ex.findStarted(key) }

// stepOutput returns the output of the only step of a run, or its error.
func stepOutput(res run.Result) (json.RawMessage, error) {
	switch {
	case res.Status == sentinels.StatusCompleted && res.Output == nil:
		return json.RawMessage("null"), nil
	case res.Status == sentinels.StatusCompleted:
		return res.Output, nil
	case res.Error != nil:
		return nil, res.Error
	}
	return nil, failure.New(abi.Internal, "run %s ended as %s", res.Run, res.Status)
}
