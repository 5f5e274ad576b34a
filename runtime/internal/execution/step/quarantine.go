package step

import (
	"context"
	"fmt"

	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// QuarantineName returns the name of the pending decision about a quarantined step.
// Host calls are numbered from 1, so 0 is free.
func QuarantineName(path string) string { return history.CallName(path, 0) }

// checkQuarantine blocks a quarantined step until a person decides about it, and marks
// a suspected step, which executes only in its turn. refused is the error with which
// the step ends if that is the decision.
func (x *stepExecution) checkQuarantine(ctx context.Context) (refused *abi.Error, err error) {
	if x.recorded == nil || x.recorded.Last == 0 || x.recorded.Retry != nil {
		return nil, nil
	}
	limits, c := x.svc.Limits, x.run.Crashes(x.path)
	if !limits.Quarantined(c) {
		if limits.Suspected(c) {
			x.suspectCrashes = c.Count
		}
		return nil, nil
	}
	sig, err := x.run.AwaitDecision(ctx, QuarantineName(x.path), c.Count, run.PendingDecision{Kind: run.DecisionQuarantine, Prompt: fmt.Sprintf(
		"step %s was executing at %d crashes of the host and is quarantined: may it execute again?", x.address, c.Count)})
	if err != nil {
		return nil, err
	}
	if sig.Verdict != "retry" {
		return &abi.Error{Code: abi.Interrupted, Permanent: true, Message: fmt.Sprintf(
			"step %s was executing at %d crashes of the host and was failed by %s", x.address, c.Count, sig.By)}, nil
	}
	x.run.LiftQuarantine(x.path)
	return nil, nil
}
