package sentinel

import (
	"testing"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// TestOnlyPersonsLiftQuarantines: of a run that asks about a quarantined step only a person pauses
// and resumes it, whatever its status: a pause of it, or of a run above it, hides the quarantine in
// the status, and a resume with a comment then lifts it.
func TestOnlyPersonsLiftQuarantines(t *testing.T) {
	asks := []runtime.PendingDecision{{Kind: runtime.DecisionQuarantine}}
	for _, info := range []runtime.RunInfo{
		{Status: sentinels.StatusQuarantined},
		{Status: sentinels.StatusQuarantined, Decisions: asks},
		{Status: sentinels.StatusPaused, Decisions: asks},
		{Status: sentinels.StatusPaused, Decisions: asks, PausedWith: "r1"},
		{Status: sentinels.StatusRunning, Decisions: asks},
	} {
		for _, by := range []command.By{command.ByAgent, command.ByModel, command.ByStep, command.ByUser} {
			err := liftsQuarantine(&command.Call{By: by}, "resume", info)
			if denied := abi.CodeOf(err) == abi.Denied; denied == (by == command.ByUser) {
				t.Errorf("%s resumes a run with the status %s that asks %v: %v", by, info.Status, info.Decisions, err)
			}
		}
	}
	if err := liftsQuarantine(&command.Call{By: command.ByAgent}, "resume", runtime.RunInfo{Status: sentinels.StatusPaused}); err != nil {
		t.Error(err)
	}
}
