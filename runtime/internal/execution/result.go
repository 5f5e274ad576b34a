package execution

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/execution/step"
	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Await is Runtime.Wait of package runtime.
func (ex *Executor) Await(ctx context.Context, id sentinels.RunID) (run.Result, error) {
	res, err := ex.await(ctx, id, nil)
	return res.Result, err
}

// await is [Executor.Await] for callers that must distinguish a run that ended from one
// that this process detached from. parent is the active run that waits; nil for any other
// caller, which is notified of nothing before it is durable.
func (ex *Executor) await(ctx context.Context, id sentinels.RunID, parent *liveRun) (waitedResult, error) {
	if r := ex.live(id); r != nil {
		over := r.done
		if parent != nil && r.parent == parent {
			over = r.ended
		}
		select {
		case <-over:
			r.mu.Lock()
			defer r.mu.Unlock()
			return *r.result, nil
		case <-ctx.Done():
			return waitedResult{}, context.Cause(ctx)
		}
	}
	info, err := ex.Status(id)
	if ex.ctx.Err() != nil && (err != nil || !info.Status.Final()) {
		// The runtime is closing and has detached from the run, perhaps before its
		// first record was committed. The end of the process is not the end of the run.
		return waitedResult{}, step.ErrShutdown
	}
	if err != nil {
		return waitedResult{}, err
	}
	if !info.Status.Final() {
		return waitedResult{}, failure.New(abi.Conflict, "run %s is %s and no process executes it", id, info.Status)
	}
	res, err := ex.StoredResult(info)
	return waitedResult{Result: res}, err
}

// StoredResult reads the result of a finished run. If retention has removed its
// variables, the result is made from the summary.
func (ex *Executor) StoredResult(info run.Info) (run.Result, error) {
	raw, ok, err := ex.opt.Store.Get(BucketResults, []byte(info.ID))
	if err != nil {
		return run.Result{}, err
	}
	if !ok { // retention has removed it
		return info.Result(), nil
	}
	var v journal.Value
	if err := json.Unmarshal(raw, &v); err != nil {
		return run.Result{}, err
	}
	body, err := ex.svc.Values.Load(v)
	if err != nil {
		return run.Result{}, err
	}
	var res run.Result
	err = json.Unmarshal(body, &res)
	res.Duration = time.Duration(res.Millis) * time.Millisecond
	return res, err
}

// resultPuts returns the writes that store a result.
func (ex *Executor) resultPuts(res run.Result) ([]store.Put, error) {
	body, err := encodeResult(res)
	if err != nil {
		return nil, err
	}
	v, err := ex.svc.Values.Redacted(body)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(v)
	return []store.Put{{Bucket: BucketResults, Key: []byte(res.Run), Value: raw}}, err
}

// encodeResult returns a result as [json.Marshal], which would check and copy its values several times.
func encodeResult(res run.Result) (json.RawMessage, error) {
	variables, err := step.EncodeValues(res.Variables)
	if err != nil {
		return nil, err
	}
	var output []byte
	if len(res.Output) > 0 {
		member, err := step.EncodeValues(map[string]json.RawMessage{"output": res.Output})
		if err != nil {
			return nil, err
		}
		output = append(member[1:len(member)-1], ',')
	}
	res.Output, res.Variables = nil, nil
	text, err := json.Marshal(res)
	if err != nil {
		return nil, err
	}
	before, after, _ := bytes.Cut(text, []byte(`"variables":null`)) // a quote within a text is escaped
	return slices.Concat(before, output, []byte(`"variables":`), variables, after), nil
}

// A waitedResult is the result of [Executor.await].
type waitedResult struct {
	run.Result
	detached bool // the process ended before the run did; another process may resume the run
}

// makeResult returns the result of a run that ends.
func (r *liveRun) makeResult(end *journal.RunEndBody) run.Result {
	usage, iterations := r.budget.Total(r.id), r.Iteration()
	elapsed := r.clock.Elapsed()
	sc := r.runScope()
	variables := onlyNamed(sc.Variables(), sc.Order())
	for name, v := range variables { // guests see inputs unredacted, callers must not
		variables[name] = r.ex.svc.Redact.JSON(v)
	}
	return run.Result{
		ID: r.id, Run: r.id, Sentinel: r.begin.Sentinel, Status: end.Status, Iterations: iterations, Iteration: iterations, StartedAt: r.summary().StartedAt,
		Duration: elapsed, Millis: elapsed.Milliseconds(), Usage: usage, Output: sc.Last(),
		Variables: variables, Reason: end.Limit, Step: end.Step, Error: end.Error, Finally: end.Finally,
	}
}
