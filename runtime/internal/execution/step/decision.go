package step

import (
	"context"

	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/run"
)

// callName returns the name of the call in pending decisions.
func (a *attempt) callName(c *call) string { return history.CallName(a.path, c.seq) }

// awaitDecision waits until a person decides; the status of the run is waiting
// meanwhile. A decision that the journal contains is returned at once.
func (a *attempt) awaitDecision(ctx context.Context, c *call, what run.PendingDecision) (*waitDecision, error) {
	a.releaseTurn() // it may take days
	sig, err := a.run.AwaitDecision(ctx, a.callName(c), a.n, what)
	if err != nil {
		return nil, err
	}
	return &waitDecision{Verdict: sig.Verdict, By: sig.By, At: sig.At, Comment: sig.Comment, Result: sig.Result}, nil
}
