package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
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
	req, ok, err := r.startingCall(x)
	if err != nil || !ok {
		return err // not ok: of an iteration that is over, nothing waits for it
	}
	var own sentinels.Interrupt
	if step, err := r.definition().StepAt(req.address); err == nil {
		own = step.OnInterrupt
	}
	choice := r.interruptChoice(own)
	name := x.Path + "!" + x.Execution
	verdict := string(choice)
	if choice == "" || choice == sentinels.InterruptAsk {
		sig, _, err := r.askFor(r.ctx, name, Ask{Kind: AskDoubt, Prompt: fmt.Sprintf(
			"the process that step %s had started in the background, %s, died with the host", req.address, x.Execution)})
		if err != nil {
			return err
		}
		verdict = sig.Verdict
		taken := &journal.Record{Kind: journal.Signal, Signal: &journal.SignalBody{Type: signalTaken, Call: name}}
		if err := r.write(writeOptions{}, taken).Wait(r.ctx); err != nil {
			return err
		}
	}
	switch verdict {
	case "retry":
		_, err = r.rt.opt.Commands.Call(r.ctx, CommandCall{
			Command: req.Command, Params: req.Params, Run: r.id, Sentinel: r.begin.Sentinel, Path: x.Path, Attempt: req.attempt,
			Key: req.key, Workspace: r.begin.Workspace, Env: req.env,
		})
		if err != nil {
			return fmt.Errorf("start %s of step %s again: %w", req.Command, req.address, err)
		}
	case "fail":
		return &abi.Error{Code: abi.Interrupted, Permanent: true, Message: fmt.Sprintf("the process of step %s died with the host", req.address)}
	}
	return nil
}

type startedCall struct {
	commandRequest
	env     map[string]string
	key     string
	attempt int
	address string
}

// startingCall finds the recorded command call that started an execution.
func (r *run) startingCall(x InterruptedExecution) (startedCall, bool, error) {
	if r.hist == nil {
		return startedCall{}, false, nil
	}
	for key, e := range r.hist.execs {
		path, _, _ := strings.Cut(key, "@")
		if path != x.Path {
			continue
		}
		for n, a := range e.attempts {
			for _, c := range a.calls {
				s, ok, err := r.started(x, a, c)
				if err != nil || !ok {
					continue
				}
				s.attempt = n
				s.key = digest(digest(string(r.id), fmt.Sprint(r.iteration), path), fmt.Sprint(c.start.Seq))
				return s, true, nil
			}
		}
	}
	return startedCall{}, false, nil
}

// started reads a recorded call if it is the one that started x.
func (r *run) started(x InterruptedExecution, a *attemptHistory, c *callHistory) (startedCall, bool, error) {
	if a.start == nil || c.start == nil || c.end == nil || c.start.Function != abi.FuncCommand {
		return startedCall{}, false, nil
	}
	answer, err := r.rt.load(c.end.Result)
	if err != nil {
		return startedCall{}, false, err
	}
	var started struct {
		ExecutionID string `json:"executionId"`
	}
	if json.Unmarshal(answer, &started) != nil || started.ExecutionID != x.Execution {
		return startedCall{}, false, nil
	}
	raw, err := r.rt.load(c.start.Request)
	if err != nil {
		return startedCall{}, false, err
	}
	s := startedCall{env: a.start.Env, address: a.start.Address}
	err = json.Unmarshal(raw, &s.commandRequest)
	return s, err == nil, err
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
