package step

import (
	"context"
	"fmt"

	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// QuarantineName names the pending decision about a quarantined step. Calls are
// numbered from 1.
func QuarantineName(path string) string { return history.CallName(path, 0) }

// checkQuarantine holds a step that is quarantined until a person decides about it, and
// makes one that is suspected wait for its turns. refused is the error that the
// step ends with, if that is the decision.
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
	sig, _, err := x.run.AwaitDecision(ctx, QuarantineName(x.path), run.PendingDecision{Kind: run.DecisionQuarantine, Prompt: fmt.Sprintf(
		"step %s was executing at %d crashes of the host and is quarantined: may it execute again?", x.address, c.Count)})
	if err != nil {
		return nil, err
	}
	if sig.Verdict != "retry" {
		return &abi.Error{Code: abi.Interrupted, Permanent: true, Message: fmt.Sprintf(
			"step %s was executing at %d crashes of the host, and %s decided that it fails", x.address, c.Count, sig.By)}, nil
	}
	x.run.LiftQuarantine(x.path)
	return nil, nil
}
