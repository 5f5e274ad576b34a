//go:build linux

package crashtest_test

import (
	"fmt"
	"sort"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime"
)

// A record is what is known of a run over all its lives.
type record struct {
	snaps map[int]*snapshot // after each life
	last  int               // the life in which the run ended
}

// take compares what a life left with what the one before had left and with what it
// had reported, because both were durable.
func (h *record) take(t *testing.T, l *life, s *snapshot) {
	t.Helper()
	n := l.number
	h.snaps[n] = s
	if before := h.snaps[n-1]; before != nil {
		for _, lost := range s.keeps(before) {
			t.Errorf("life %d: %s", n, lost)
		}
		if before.root != "" && s.root != before.root {
			t.Errorf("life %d: run %s is not there any more", n, before.root)
		}
	}
	if s.marks[0] != s.marks[1] || s.ticks[0] != s.ticks[1] {
		t.Errorf("after life %d: %d calls are recorded that made documents and there are %d; %d that made events and there are %d",
			n, s.marks[0], s.marks[1], s.ticks[0], s.ticks[1])
	}
	for _, r := range l.reports {
		if r.Progress == nil {
			continue
		}
		p := *r.Progress
		switch p.Event {
		case runtime.OnRunStart:
			if s.root == "" {
				t.Errorf("life %d reported run %s, which is not stored", n, p.Run)
			}
		case runtime.OnStepEnd:
			prefix := fmt.Sprintf("%s/%d/%s", p.Run, p.Iteration, p.Path)
			found := false
			for key, f := range s.steps {
				if key == prefix || len(key) > len(prefix) && key[:len(prefix)+1] == prefix+"@" {
					found = found || f.ended
				}
			}
			if !found {
				t.Errorf("life %d reported the end of step %s, which is not stored", n, prefix)
			}
		}
	}
}

// begun is one start of a program, or one request for a model turn.
type begun struct {
	life int

	run run
}

// judge holds all that was done to what is recorded.
func (h *record) judge(t *testing.T, workspace, policy string, asked []turn) {
	t.Helper()
	starts := map[program][]begun{}
	keys := map[string]program{}
	for _, r := range effects(t, workspace) {
		starts[r.program] = append(starts[r.program], begun{life: r.life, run: r})
		if p, known := keys[r.key]; known && p != r.program {
			t.Errorf("idempotency key %s is that of %+v and of %+v", r.key, p, r.program)
		}
		keys[r.key] = r.program
	}
	if len(keys) != len(starts) {
		t.Errorf("%d programs have %d idempotency keys", len(starts), len(keys))
	}
	decided := decisions(t, workspace)
	end := h.snaps[h.last]
	for p, list := range starts {
		background := p.name == "job" || p.name == "server"
		doubts := h.hold(t, fmt.Sprintf("program %+v", p), list, func(s *snapshot) fact {
			f := s.programs[p]
			if background && f.ended {
				f.ended = s.shells[f.program].State == "ended"
			}
			return f
		})
		if policy == "" {
			doubts = decided[program{run: p.run, iteration: p.iteration, path: p.path}]
			if background { // its step's only call is in doubt until that has an answer, and then what it started
				doubts = decided[program{run: p.run, iteration: p.iteration, path: p.path, name: "1"}] + decided[program{run: p.run, name: end.programs[p].program}]
			}
		}
		if repeats := len(list) - 1; repeats > doubts {
			t.Errorf("program %+v was started %d times and was in doubt, or decided about, %d times", p, len(list), doubts)
		}
		final := end.programs[p]
		newest := list[len(list)-1].run
		if !final.ended || !background && (final.nonce != newest.cookie || !newest.ended) {
			t.Errorf("program %+v: recorded is %+v, the last start is %+v", p, final, newest)
		}
	}
	for p := range end.programs {
		if len(starts[p]) == 0 {
			t.Errorf("program %+v is recorded and never ran", p)
		}
	}
	for id, known := range end.children {
		if !known {
			t.Errorf("child run %s was started, and no call is recorded that did", id)
		}
	}
	requests := map[turn][]begun{}
	for _, q := range asked {
		n := 0
		if _, err := fmt.Sscanf(q.life, "life-%d", &n); err != nil {
			t.Fatalf("turn of %q: %v", q.life, err)
		}
		q.life = ""
		requests[q] = append(requests[q], begun{life: n})
	}
	for q, list := range requests {
		doubts := h.hold(t, fmt.Sprintf("turn %+v", q), list, func(s *snapshot) fact { return s.turns[q] })
		if repeats := len(list) - 1; repeats > doubts {
			t.Errorf("turn %+v was asked for %d times and was in doubt %d times", q, len(list), doubts)
		}
	}
	for q, f := range end.turns {
		if !f.ended || len(requests[q]) == 0 {
			t.Errorf("turn %+v: recorded is %+v, asked for %d times", q, f, len(requests[q]))
		}
	}
}

// hold checks the lives in which one thing was begun: at most once in each, not
// before the journal has its start, and never again once its result is recorded. It
// returns after how many lives the thing was in doubt.
func (h *record) hold(t *testing.T, what string, list []begun, recorded func(*snapshot) fact) (doubts int) {
	t.Helper()
	sort.SliceStable(list, func(i, j int) bool { return list[i].life < list[j].life })
	for i, b := range list {
		if i > 0 && list[i-1].life == b.life {
			t.Errorf("%s was begun twice in life %d", what, b.life)
		}
		if !recorded(h.snaps[b.life]).started {
			t.Errorf("%s was begun in life %d, whose journal does not know of it", what, b.life)
		}
		for n := 1; n < b.life; n++ {
			if recorded(h.snaps[n]).ended {
				t.Errorf("%s was recorded after life %d and begun again in life %d", what, n, b.life)
				break
			}
		}
	}
	for n := 1; n < h.last; n++ {
		if f := recorded(h.snaps[n]); f.started && !f.ended {
			doubts++
		}
	}
	return doubts
}
