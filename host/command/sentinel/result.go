package sentinel

import (
	"context"
	"fmt"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

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
