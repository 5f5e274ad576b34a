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
			err := liftsQuarantine(&command.Call{By: by}, info)
			if denied := abi.CodeOf(err) == abi.Denied; denied == (by == command.ByUser) {
				t.Errorf("%s resumes a run with the status %s that asks %v: %v", by, info.Status, info.Decisions, err)
			}
		}
	}
	if err := liftsQuarantine(&command.Call{By: command.ByAgent}, runtime.RunInfo{Status: sentinels.StatusPaused}); err != nil {
		t.Error(err)
	}
}

// TestHeldBackWithAQuestion: with a run that asks a person about an interrupted call, or asked when it ended, only
// persons go on, and steps of theirs.
func TestHeldBackWithAQuestion(t *testing.T) {
	doubt := runtime.RunInfo{Status: sentinels.StatusWaiting, Decisions: []runtime.PendingDecision{{Kind: runtime.DecisionDoubt}}}
	paused := doubt
	paused.Status = sentinels.StatusPaused
	approval := runtime.RunInfo{Status: sentinels.StatusWaiting, Decisions: []runtime.PendingDecision{{Kind: runtime.DecisionApproval}}}
	ended := runtime.RunInfo{Status: sentinels.StatusStopped, EndedQuestion: runtime.DecisionQuarantine}
	agent, step := &command.Call{By: command.ByAgent}, &command.Call{By: command.ByStep}
	bounded := &command.Call{By: command.ByStep, Within: []string{}}
	for _, test := range []struct {
		name   string
		call   *command.Call
		run    runtime.RunInfo
		again  bool
		denied bool
	}{
		{"agent", agent, doubt, false, true},
		{"agent, paused", agent, paused, true, true},
		{"agent, approval", agent, approval, true, false},
		{"agent, ended", agent, ended, true, true},
		{"bounded step", bounded, doubt, true, true},
		{"step", step, doubt, true, false},
		{"model", &command.Call{By: command.ByModel}, doubt, true, true},
		{"person", &command.Call{By: command.ByUser}, doubt, true, false},
	} {
		if err := heldBack(test.call, test.run, test.again); (abi.CodeOf(err) == abi.Denied) != test.denied {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}
