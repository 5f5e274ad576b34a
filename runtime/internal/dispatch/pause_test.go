package dispatch_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/trigger"
)

// paused returns how the triggers of sentinel s are paused.
func (h *harness) paused(t *testing.T) (paused bool, until time.Time) {
	t.Helper()
	list, err := h.Triggers("s", 0)
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	return list[0].Paused, list[0].PausedUntil
}

// pauseFor pauses the triggers of sentinel s.
func (h *harness) pauseFor(t *testing.T, d time.Duration) {
	t.Helper()
	if err := h.Pause(t.Context(), "s", trigger.Pause{Until: time.Now().Add(d)}); err != nil {
		t.Fatal(err)
	}
}

// TestPauseEndsByItself: at its time, also if that was replaced, after a time in which nothing could
// be written, and after a restart before and behind it.
func TestPauseEndsByItself(t *testing.T) {
	const week = 7 * 24 * time.Hour
	tests := map[string]func(t *testing.T, h *harness) *harness{
		"at its time": func(t *testing.T, h *harness) *harness {
			time.Sleep(week - time.Minute)
			if paused, until := h.paused(t); !paused || until.IsZero() {
				t.Errorf("a minute before: paused is %t, until %s", paused, until)
			}
			time.Sleep(2 * time.Minute)
			return h
		},
		"replaced": func(t *testing.T, h *harness) *harness {
			h.pauseFor(t, time.Hour)
			time.Sleep(2 * time.Hour)
			return h
		},
		"read-only at its time": func(t *testing.T, h *harness) *harness {
			h.set(&h.readOnly, errors.New("the disk is full"))
			time.Sleep(week + time.Hour)
			if paused, _ := h.paused(t); !paused {
				t.Error("the pause ended while nothing could be written")
			}
			h.set(&h.readOnly, nil)
			time.Sleep(time.Minute)
			return h
		},
		"disarmed and armed before": func(t *testing.T, h *harness) *harness {
			h.Disarm()
			if err := h.Arm(t.Context()); err != nil {
				t.Fatal(err)
			}
			if paused, _ := h.paused(t); !paused {
				t.Error("the pause did not survive")
			}
			time.Sleep(week + time.Minute)
			return h
		},
		"restarted behind it": func(t *testing.T, h *harness) *harness {
			snap := h.db.Snapshot()
			h.Close()
			time.Sleep(2 * week)
			next := newHarness(t, snap)
			next.arm(t, "s", "", `{}`)
			return next
		},
	}
	for name, then := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHarness(t, store.NewMemory())
				h.arm(t, "s", "", `{}`)
				h.pauseFor(t, week)
				h = then(t, h)
				synctest.Wait()
				if paused, until := h.paused(t); paused || !until.IsZero() {
					t.Errorf("paused is %t, until %s", paused, until)
				}
				h.fire(t, "s", firing("a"))
				if err := h.Arm(t.Context()); err != nil { // the record of the pause is gone from the store too
					t.Fatal(err)
				}
			})
		})
	}
}

// TestPauseDoesNotEndByItself: one that was replaced by a pause without an end lasts, and one that
// a user ended is not ended again.
func TestPauseDoesNotEndByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, store.NewMemory())
		h.arm(t, "s", "", `{}`)
		h.pauseFor(t, time.Hour)
		if err := h.Pause(t.Context(), "s", trigger.Pause{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		if paused, until := h.paused(t); !paused || !until.IsZero() {
			t.Errorf("paused is %t, until %s", paused, until)
		}
	})
}

// TestDisarmWhileAPauseEnds: the end of a pause takes the same lock as Disarm, which waits for it.
func TestDisarmWhileAPauseEnds(t *testing.T) {
	for i := range 50 {
		synctest.Test(t, func(t *testing.T) {
			h := newHarness(t, store.NewMemory())
			h.arm(t, "s", "", `{}`)
			h.pauseFor(t, time.Second)
			time.Sleep(time.Second - time.Duration(i%3)*time.Nanosecond)
			h.Disarm() // before, at and behind the moment
			if err := h.Arm(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			synctest.Wait()
			if paused, _ := h.paused(t); paused {
				t.Error("the pause did not end")
			}
		})
	}
}
