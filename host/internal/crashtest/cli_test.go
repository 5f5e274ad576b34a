//go:build linux

package crashtest_test

import (
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// TestCommandLine kills "sentinel run" and every "sentinel run --resume RUN"
// that follows it, until one of them comes to the run's end.
func TestCommandLine(t *testing.T) {
	t.Cleanup(func() { noHelpers(t) })
	server := newModelServer(t)
	d := newDoubt(t, everythingWith("retry"))
	state := filepath.Join(d.order.Dir, "state")
	h := &record{snaps: map[int]*snapshot{}}
	lives := 12
	if testing.Short() {
		lives = 4
	}
	for d.order.Life = 1; ; d.order.Life++ {
		// Progress between two kills, for three in one step end the run.
		p := plan{after: afterEvent, count: 25 + rand.IntN(40)}
		if d.order.Life > lives {
			p = plan{}
		}
		d.order.CLI = []string{"run", "kill.json", "-o", "jsonl", "--state", state}
		if d.order.Run != "" {
			d.order.CLI = []string{"run", "--resume", string(d.order.Run), "-o", "jsonl", "--state", state}
		}
		l := start(t, d.order, server.URL)
		l.live(t, p, nil)
		s := (&campaign{cutOff: map[string]int{}}).account(t, l, state)
		h.take(t, l, s)
		d.order.Run = s.root
		if l.killed && !s.status.Final() {
			continue
		}
		// A kill between the run's end and the program's leaves nothing to resume.
		res := l.reports[len(l.reports)-1].Result
		if s.status != sentinels.StatusCompleted || !l.killed && (res == nil || res.Status != s.status || res.Run != s.root) {
			t.Fatalf("the run is %s, and the last life ended so: %s", s.status, l.tail())
		}
		h.last = d.order.Life
		h.judge(t, d.order.Workspace, "retry", server.asked())
		nothingLives(t, d.order.Workspace, d.order.Life)
		t.Logf("%d kills", d.order.Life-1)
		if d.order.Life == 1 {
			t.Error("nothing was killed")
		}
		return
	}
}
