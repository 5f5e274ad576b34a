package execution

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/external"
	"github.com/sentinel-runtime/sentinel/runtime/internal/execution/step"
	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// findInterruptedProcesses lists the background processes of the run that died with the
// last host. [liveRun.recoverProcesses] handles each of them before the run continues.
func (r *liveRun) findInterruptedProcesses(ctx context.Context) error {
	if r.ex.svc.Executions == nil {
		return nil
	}
	interrupted, err := r.ex.svc.Executions.Interrupted(ctx, r.id)
	if err != nil {
		return fmt.Errorf("end processes of the last host: %w", err)
	}
	r.interruptedProcesses = interrupted
	return nil
}

// recoverProcesses handles every background process that a crash interrupted. The host
// call that started the process has its answer, but the process is gone, so the call is
// in doubt as if it had no answer. Processes belong to the run, not to an iteration:
// the call may be of an earlier iteration.
func (r *liveRun) recoverProcesses() error {
	if len(r.interruptedProcesses) == 0 {
		return nil
	}
	calls, err := r.startingCalls()
	if err != nil {
		return err
	}
	for _, x := range r.interruptedProcesses {
		if err := r.recoverProcess(x, calls[x.Execution]); err != nil {
			return err
		}
	}
	r.interruptedProcesses, r.processStarts = nil, nil
	return nil
}

// recoverProcess starts an interrupted process again, skips it or fails the run, as
// onInterrupt or a person decides. It does nothing if req is nil: the call that started
// the process has no recorded end then, and is itself in doubt when its step continues.
func (r *liveRun) recoverProcess(x external.InterruptedExecution, req *startedCall) error {
	if req == nil || req.skipped {
		return nil
	}
	choice := r.stepInterrupt(req.address)
	name := processDecisionName(x)
	verdict := string(choice)
	if choice == "" || choice == sentinels.InterruptAsk {
		sig, err := r.AwaitDecision(r.ctx, name, req.attempt, run.PendingDecision{Kind: run.DecisionDoubt, Prompt: fmt.Sprintf(
			"the process that step %s had started in the background, %s, died with the host", req.address, x.Execution)})
		if err != nil {
			return err
		}
		verdict = sig.Verdict
		taken := &journal.Record{Kind: journal.Signal, Signal: &journal.SignalBody{Type: history.SignalUsed, Call: name}}
		if err := r.Write(step.Commit{}, taken).Wait(r.ctx); err != nil {
			return err
		}
	}
	switch verdict {
	case "retry":
		environment := r.Definition().Environment()
		if s, err := r.Definition().StepAt(req.address); req.By == "model" || err != nil {
			environment = environment.Plain()
		} else {
			environment.Secrets = s.Secrets()
		}
		_, err := r.ex.svc.Commands.Call(r.ctx, external.CommandCall{
			Command: req.Command, Params: req.Params, Run: r.id, Sentinel: r.begin.Sentinel, Path: x.Path, Attempt: req.attempt,
			Key: req.key, Workspace: r.begin.Workspace, Env: req.env, Environment: environment, Within: r.Within(),
		})
		if err != nil {
			return fmt.Errorf("start %s of step %s again: %w", req.Command, req.address, err)
		}
	case "fail":
		return &abi.Error{Code: abi.Interrupted, Permanent: true, Message: fmt.Sprintf("the process of step %s died with the host", req.address)}
	}
	return nil
}

// processDecisionName returns the name of the pending decision about an interrupted
// process.
func processDecisionName(x external.InterruptedExecution) string { return x.Path + "!" + x.Execution }

// A startedCall is a recorded host call that started a background process.
type startedCall struct {
	step.CommandRequest
	env     map[string]string
	key     string
	attempt int
	address string
	skipped bool // a decision after an earlier crash was to skip the process
}

// startingCalls returns, by execution id, the recorded command calls that started the
// interrupted processes. It reads all records of the run that are kept, once.
func (r *liveRun) startingCalls() (map[string]*startedCall, error) {
	if r.processStarts != nil {
		return r.processStarts, nil
	}
	found := map[string]*startedCall{}
	var calls history.CallReader
	err := r.ex.opt.Store.Journal(string(r.id), 1, func(seq uint64, raw []byte) error {
		rec, err := journal.Decode(raw)
		if err != nil {
			return fmt.Errorf("record %d: %w", seq, err)
		}
		if rec.Signal != nil {
			for _, x := range r.interruptedProcesses {
				if c := found[x.Execution]; c != nil && rec.Signal.Call == processDecisionName(x) && rec.Signal.Type != history.SignalUsed {
					c.skipped = rec.Signal.Verdict == "skip"
				}
			}
		}
		a, c := calls.Add(rec)
		if c == nil {
			return nil
		}
		for _, x := range r.interruptedProcesses {
			if x.Path != rec.Path {
				continue
			}
			s, ok, err := r.started(x, a, c)
			if err != nil {
				return err
			}
			if ok {
				s.attempt = a.Number
				s.key = step.CallKey(step.ExecutionKey(r.id, calls.Iteration, rec.Path), c.Seq)
				found[x.Execution] = &s
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	r.processStarts = found
	return found, nil
}

// started decodes a recorded call; ok is false if it did not start x.
func (r *liveRun) started(x external.InterruptedExecution, a *history.Attempt, c *history.Call) (s startedCall, ok bool, err error) {
	if a.Start == nil || c.Start == nil || c.End == nil || c.Start.Function != abi.FuncCommand {
		return startedCall{}, false, nil
	}
	answer, err := r.ex.svc.Values.Load(c.End.Result)
	if err != nil {
		return startedCall{}, false, err
	}
	var started struct {
		ExecutionID string `json:"executionId"`
	}
	if json.Unmarshal(answer, &started) != nil || started.ExecutionID != x.Execution {
		return startedCall{}, false, nil
	}
	raw, err := r.ex.svc.Values.Load(c.Start.Request)
	if err != nil {
		return startedCall{}, false, err
	}
	s = startedCall{env: a.Start.Env, address: a.Start.Address}
	err = json.Unmarshal(raw, &s.CommandRequest)
	return s, err == nil, err
}

// endEditedProcesses ends the programs of background steps that def, which the next iteration uses, does not have
// unchanged at their address. A step that remains starts its program again when it is executed. It precedes the record of
// the iteration: a crash between both ends the programs too, and one after it has none of a step that is gone to recover.
func (r *liveRun) endEditedProcesses(def *sentinels.Definition) {
	if r.ex.svc.Executions == nil {
		return
	}
	before := r.Definition()
	changed := func(path string) bool {
		address := sentinels.PathAddress(path)
		old, err := before.StepAt(address)
		if err != nil {
			return true
		}
		step, err := def.StepAt(address)
		return err != nil || !sameStep(old, step)
	}
	ctx, cancel := context.WithTimeout(r.ctx, 30*time.Second)
	defer cancel()
	if err := r.ex.svc.Executions.EndBackground(ctx, r.id, changed); err != nil {
		r.ex.svc.Log.Error("processes of steps that were edited did not end", "run", r.id, "error", err)
	}
}

// sameStep reports whether two steps have the same JSON.
func sameStep(a, b *sentinels.Step) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// endProcesses ends the background processes of a run that has ended.
func (r *liveRun) endProcesses() {
	if r.ex.svc.Executions == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := r.ex.svc.Executions.EndRun(ctx, r.id); err != nil {
		r.ex.svc.Log.Error("processes of a run did not end", "run", r.id, "error", err)
	}
}
