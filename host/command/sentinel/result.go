package sentinel

import (
	"context"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

type awaitIn struct {
	targetIn
	TimeoutMs int64 `json:"timeoutMs,omitempty" jsonschema:"time limit in milliseconds; the error is timeout, and the run continues. Default none"`
}

// await waits for the end of a run. A run cannot wait for itself, for a run above it or in
// a circle.
func (f family) await(ctx context.Context, call *command.Call, in awaitIn) (runtime.Result, error) {
	if in.TimeoutMs < 0 {
		return runtime.Result{}, &abi.Error{Code: abi.BadFields, Field: "timeoutMs", Message: fmt.Sprintf("timeoutMs: %d, want a positive number of milliseconds", in.TimeoutMs)}
	}
	info, err := f.target(in.targetIn, true)
	if err != nil {
		return runtime.Result{}, err
	}
	return f.wait(ctx, call, info.ID, in.TimeoutMs)
}

// wait waits for the end of a run; 0 means no limit.
func (f family) wait(ctx context.Context, call *command.Call, id sentinels.RunID, timeoutMs int64) (runtime.Result, error) {
	limited := ctx
	if timeoutMs > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, time.Duration(timeoutMs)*time.Millisecond)
		defer cancel()
	}
	res, err := f.rt.WaitFrom(limited, call.Run, id)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return runtime.Result{}, &abi.Error{Code: abi.Timeout, Message: fmt.Sprintf("await run %s: it has not ended after %d ms", id, timeoutMs)}
	}
	return counted(call, res, err)
}

// counted counts a result for the caller of a command.
func counted(call *command.Call, res runtime.Result, err error) (runtime.Result, error) {
	size := len(res.Output)
	for _, value := range res.Variables {
		size += len(value)
	}
	if err == nil {
		err = call.Count(int64(size))
	}
	if err != nil {
		return runtime.Result{}, err
	}
	return res, nil
}

type runIn struct {
	startIn
	TimeoutMs int64 `json:"timeoutMs,omitempty" jsonschema:"how long to wait, in milliseconds; the error is timeout, and the run continues. Default: until it ends" minimum:"1"`
}

// run is start and await in one call. A call that is repeated after a crash waits for the
// run that it has started. The run that a step starts is a child of the step's.
func (f family) run(ctx context.Context, call *command.Call, in runIn) (runtime.Result, error) {
	started, err := f.begin(ctx, call, in.startIn, true)
	if err != nil {
		return runtime.Result{}, err
	}
	res, err := f.wait(ctx, call, started.Run, in.TimeoutMs)
	if err != nil {
		f.rt.StopAbandoned(ctx, call.Run, started.Run)
	}
	return res, err
}

// result shows how a run ended, in the form of the last line of "-o jsonl". It
// does not wait; a client that needs the end of a run follows the run.
func (f family) result(ctx context.Context, call *command.Call, in targetIn) (runtime.Result, error) {
	info, err := f.target(in, true)
	if err != nil {
		return runtime.Result{}, err
	}
	if !info.Status.Final() {
		return runtime.Result{}, &abi.Error{Code: abi.Conflict, Message: fmt.Sprintf("result of run %s: it is %s", info.ID, info.Status), Hint: "ask again when it is over"}
	}
	res, err := f.rt.Wait(ctx, info.ID)
	return counted(call, res, err)
}
