package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// interruptedExecutions finds the background processes of the run that died
// with the last host. What becomes of each is decided before the run goes on.
func (r *run) interruptedExecutions(ctx context.Context) error {
	if r.rt.opt.Executions == nil {
		return nil
	}
	cut, err := r.rt.opt.Executions.Interrupted(ctx, r.id)
	if err != nil {
		return fmt.Errorf("end what is left of its processes: %w", err)
	}
	r.cut = cut
	return nil
}

// revive decides about each background execution that a crash cut off. The call
// that started it has its answer, but what it started is gone: so it is in
// doubt as if it had none.
func (r *run) revive() error {
	for _, x := range r.cut {
		if err := r.reviveOne(x); err != nil {
			return err
		}
	}
	r.cut = nil
	return nil
}

func (r *run) reviveOne(x InterruptedExecution) error {
	req, address, ok := r.startingCall(x)
	if !ok {
		return nil // of an iteration that is over: nothing waits for it
	}
	var own sentinels.Interrupt
	if step, err := r.definition().StepAt(address); err == nil {
		own = step.OnInterrupt
	}
	choice := r.interruptChoice(own)
	name := x.Path + "!" + x.Execution
	verdict := string(choice)
	if choice == "" || choice == sentinels.InterruptAsk {
		sig, _, err := r.askFor(r.ctx, name, Ask{Kind: AskDoubt, Prompt: fmt.Sprintf(
			"the process that step %s had started in the background, %s, died with the host", address, x.Execution)})
		if err != nil {
			return err
		}
		verdict = sig.Verdict
	}
	switch verdict {
	case "retry":
		_, err := r.rt.opt.Commands.Call(r.ctx, CommandCall{
			Command: req.Command, Params: req.Params, Run: r.id, Sentinel: r.begin.Sentinel, Path: x.Path, Attempt: 1,
			Key: x.Key, Workspace: r.begin.Workspace, Env: req.env,
		})
		if err != nil {
			return fmt.Errorf("start %s of step %s again: %w", req.Command, address, err)
		}
	case "fail":
		return &abi.Error{Code: abi.Interrupted, Permanent: true, Message: fmt.Sprintf("the process of step %s died with the host", address)}
	}
	return nil
}

type startedCall struct {
	commandRequest
	env map[string]string
}

// startingCall finds the recorded command call that started an execution.
func (r *run) startingCall(x InterruptedExecution) (startedCall, string, bool) {
	if r.hist == nil {
		return startedCall{}, "", false
	}
	for key, e := range r.hist.execs {
		path, _, _ := strings.Cut(key, "@")
		if path != x.Path {
			continue
		}
		for _, a := range e.attempts {
			for _, c := range a.calls {
				if c.start == nil || c.end == nil || c.start.Function != abi.FuncCommand {
					continue
				}
				step := digest(string(r.id), fmt.Sprint(r.iteration), path)
				if digest(step, fmt.Sprint(c.start.Seq)) != x.Key {
					continue
				}
				raw, err := r.rt.load(c.start.Request)
				var req commandRequest
				if err != nil || json.Unmarshal(raw, &req) != nil {
					return startedCall{}, "", false
				}
				return startedCall{req, a.start.Env}, a.start.Address, true
			}
		}
	}
	return startedCall{}, "", false
}

// interruptChoice is what the step, the definition, the run or the host say
// about calls in doubt; empty when none of them says anything.
func (r *run) interruptChoice(step sentinels.Interrupt) sentinels.Interrupt {
	for _, next := range []sentinels.Interrupt{r.definition().Safety.OnInterrupt, r.onInterrupt, r.begin.Interrupt, r.rt.opt.OnInterrupt} {
		if step == "" {
			step = next
		}
	}
	return step
}
