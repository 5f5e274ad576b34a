//go:build linux

package crashtest_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// TestPoison has a step that takes its host down each time: the fourth host
// does not execute it again and asks. A resume with a reason lets it go on.
func TestPoison(t *testing.T) {
	t.Cleanup(func() { noHelpers(t) })
	d := newDoubt(t, `{"name":"poison","steps":[
		{"type":"shell","command":"sh ./act.sh before 0.01 $iteration"},
		{"type":"shell","argv":["sh","./poison.sh","poison","-","$iteration"]}],"safety":{"onInterrupt":"retry"}}`)
	for n := 1; n <= 3; n++ {
		d.order.Life = n
		l := start(t, d.order, d.server)
		l.live(t, plan{after: afterSight, when: func() bool { return false }}, nil)
		if !l.killed {
			t.Fatalf("life %d ended by itself: %s", n, l.tail())
		}
		d.order.Run = look(t, filepath.Join(d.order.Dir, "state")).root
	}
	d.order.Life = 4
	held := false
	l := start(t, d.order, d.server)
	l.live(t, plan{after: afterSight, when: func() bool { return held }}, func(r report) {
		held = held || r.Progress != nil && r.Progress.Status == sentinels.StatusQuarantined && r.Progress.Decision != nil
	})
	if !l.killed {
		t.Fatalf("after three crashes: %s", l.tail())
	}
	if err := os.WriteFile(filepath.Join(d.order.Workspace, "poison.sh"), []byte("exit 0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.order.Life = 5
	d.order.CLI = []string{"resume", string(d.order.Run), "--comment", "the script was replaced", "-o", "jsonl", "--state", filepath.Join(d.order.Dir, "state")}
	l = start(t, d.order, d.server)
	l.live(t, plan{}, nil)
	if res := l.reports[len(l.reports)-1].Result; res == nil || res.Status != sentinels.StatusCompleted {
		t.Errorf("after the quarantine was lifted: %s", l.tail())
	}
	d.started(t, "before", 1)
	d.started(t, "poison", 3)
}

// TestKillsQuarantineNoBystander kills a server three times with three programs
// under way that have done nothing wrong. None of their runs is quarantined, and
// all come to their end.
func TestKillsQuarantineNoBystander(t *testing.T) {
	sentinel, workspace, _ := served(t, t.TempDir(), false)
	release := filepath.Join(workspace, "go")
	if err := os.Remove(release); err != nil {
		t.Fatal(err)
	}
	s := serve(t, sentinel, workspace)
	s.until(t, "ok")
	runs := []sentinels.RunID{s.start(t, "hang"), s.start(t, "hang"), s.start(t, "hang")}
	for kill := 1; ; kill++ {
		for _, id := range runs {
			s.untilRun(t, id, sentinels.StatusRunning)
		}
		time.Sleep(500 * time.Millisecond) // programs that may execute do
		if kill > 3 {
			break
		}
		s.kill(t)
		s = serve(t, sentinel, workspace)
		s.until(t, "ok")
	}
	if err := os.WriteFile(release, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, id := range runs {
		s.untilRun(t, id, sentinels.StatusCompleted)
	}
	s.stop(t)
}
