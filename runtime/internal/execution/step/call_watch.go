package step

import (
	"context"

	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// startWatch begins a call of ABI clause A6.5: it watches a background process.
func (a *attempt) startWatch(ctx context.Context, c *call) error {
	if a.svc.Executions == nil {
		a.complete(c, callEnd{err: failure.New(abi.Unavailable, "%s: this host provides no processes", abi.FuncWatch)})
		return nil
	}
	return a.beginCall(ctx, c, journal.CallStartBody{Safe: true})
}

// doWatch waits for the process.
func (a *attempt) doWatch(ctx context.Context, c *call) (callEnd, error) {
	out, err := a.svc.Executions.Watch(ctx, a.run.ID(), c.request)
	if err != nil && ctx.Err() != nil {
		return callEnd{}, err
	}
	return a.commandEnd(out, err), nil
}
