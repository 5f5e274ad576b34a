package run

import (
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
)

// TestUndecided checks that a decision that was made here is not pending, though the run
// lists it until it has read it; a later one at the same call is.
func TestUndecided(t *testing.T) {
	first := runtime.PendingDecision{Call: "1!7", Since: time.Unix(1, 0)}
	again := runtime.PendingDecision{Call: "1!7", Since: time.Unix(2, 0)}
	other := runtime.PendingDecision{Call: "2!1", Since: time.Unix(1, 0)}
	f := &follower{decided: []*prompt{{run: "r", decision: first}}}
	for _, c := range []struct {
		run     runtime.RunInfo
		pending int
	}{
		{runtime.RunInfo{ID: "r", Decisions: []runtime.PendingDecision{first}}, 0},
		{runtime.RunInfo{ID: "r", Decisions: []runtime.PendingDecision{first, other}}, 1},
		{runtime.RunInfo{ID: "r", Decisions: []runtime.PendingDecision{again}}, 1},
		{runtime.RunInfo{ID: "child", Decisions: []runtime.PendingDecision{first}}, 1},
	} {
		listed := len(c.run.Decisions)
		if got := f.undecided(c.run); len(got) != c.pending || len(c.run.Decisions) != listed {
			t.Errorf("%v of %+v", got, c.run)
		}
	}
}

func TestChoose(t *testing.T) {
	choices := []string{"retry", "skip", "fail"}
	for word, want := range map[string]string{"retry": "retry", "r": "retry", "SK": "skip", "": "", "x": "", "retryy": ""} {
		if got, ok := choose(word, choices); got != want || ok != (want != "") {
			t.Errorf("Choose(%q) = %q, %v", word, got, ok)
		}
	}
	if got, ok := choose("a", []string{"approve", "abort"}); ok {
		t.Errorf("an ambiguous beginning is %q", got)
	}
}
