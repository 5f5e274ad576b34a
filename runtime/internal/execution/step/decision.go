package step

import (
	"context"

	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/run"
)

func (a *attempt) callName(c *call) string { return history.CallName(a.path, c.seq) }

// awaitDecision asks a person and waits for the answer, the run being waiting
// meanwhile. A decision that is in the journal already answers at once.
func (a *attempt) awaitDecision(ctx context.Context, c *call, what run.PendingDecision) (*waitDecision, error) {
	a.releaseTurn() // it may take days
	sig, at, err := a.run.AwaitDecision(ctx, a.callName(c), what)
	if err != nil {
		return nil, err
	}
	return &waitDecision{Verdict: sig.Verdict, By: sig.By, At: at, Comment: sig.Comment, Result: sig.Result}, nil
}
