package serve_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// TestCatchUpAtRestarts restarts a host while a run of a schedule waits for a person, three
// times. Each time the planned times of the downtime become one run, clause T5.1 of
// TRIGGERS.md, and the run that the restart interrupted is no reason to skip it, T5.5.
func TestCatchUpAtRestarts(t *testing.T) {
	project := t.TempDir()
	write(t, filepath.Join(project, ".sentinel", "sentinels", "tick.json"),
		`{"name": "tick", "trigger": {"type": "schedule", "cronExpression": "@every 1s"}, "steps": [{"type": "approve", "prompt": "go on?"}]}`)
	l := begin(t, project)
	info := func() runtime.TriggerInfo {
		t.Helper()
		list, err := l.server.Host().Runtime().Triggers("tick")
		if err != nil || len(list) != 1 {
			t.Fatalf("%v, %v", list, err)
		}
		return list[0]
	}
	question := ""
	asks := func(run sentinels.RunID) bool {
		r, err := l.server.Host().Runtime().Status(run)
		if err != nil || len(r.Decisions) != 1 {
			return false
		}
		question = r.Decisions[0].Question // it stays the same over a restart
		return true
	}
	l.until("the first run", func() bool { return info().Started == 1 })
	for n := uint64(1); n <= 3; n++ {
		run := info().LastRun
		l.until("the run to ask", func() bool { return asks(run) })
		answer := map[string]any{"run": run, "verdict": "approve", "question": question}
		l.end()
		time.Sleep(2100 * time.Millisecond) // a planned time passes, however long the end took
		l = begin(t, project)
		l.until("the late firing", func() bool { return info().Queued == n })
		l.until("the run to ask again", func() bool { return asks(run) })
		if i := info(); i.Started != n || i.Waiting != 1 || i.LastOutcome == triggers.Queued && !strings.Contains(i.LastReason, string(run)) {
			t.Errorf("restart %d: %+v", n, i)
		}
		if status := l.ask("POST", "/v1/commands/sentinel/decide", answer, nil); status != 200 {
			t.Fatalf("decide: status %d", status)
		}
		l.until("the run of the late firing", func() bool { return info().Started == n+1 })
	}
	i := info()
	if i.Queued != 3 || i.Fired != i.Started+i.Skipped+uint64(i.Waiting) {
		t.Errorf("at the end %+v", i)
	}
}
