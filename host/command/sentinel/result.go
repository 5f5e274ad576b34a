package sentinel

import (
	"context"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
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
	limited := ctx
	if in.TimeoutMs > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, time.Duration(in.TimeoutMs)*time.Millisecond)
		defer cancel()
	}
	res, err := f.rt.WaitFrom(limited, call.Run, info.ID)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return runtime.Result{}, &abi.Error{Code: abi.Timeout, Message: fmt.Sprintf("await run %s: it has not ended after %d ms", info.ID, in.TimeoutMs)}
	}
	return res, err
}

// result shows how a run ended, in the form of the last line of "-o jsonl". It
// does not wait; a client that needs the end of a run follows the run.
func (f family) result(ctx context.Context, _ *command.Call, in targetIn) (runtime.Result, error) {
	info, err := f.target(in, true)
	if err != nil {
		return runtime.Result{}, err
	}
	if !info.Status.Final() {
		return runtime.Result{}, &abi.Error{Code: abi.Conflict, Message: fmt.Sprintf("result of run %s: it is %s", info.ID, info.Status), Hint: "ask again when it is over"}
	}
	return f.rt.Wait(ctx, info.ID)
}
