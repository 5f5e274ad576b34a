package clock

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A wallClock is the bubble's clock, set forward and back by the test.
type wallClock struct{ offset atomic.Int64 }

func (w *wallClock) now() time.Time        { return time.Now().Add(time.Duration(w.offset.Load())) }
func (w *wallClock) jump(by time.Duration) { w.offset.Add(int64(by)) }

// TestCalendarFollowsJumps: after a jump ahead, time that has passed on the wall
// counts; a clock that is set back moves times of day and prolongs no duration.
func TestCalendarFollowsJumps(t *testing.T) {
	const hour = time.Hour
	for _, c := range []struct {
		name           string
		jump           time.Duration // one minute after the start
		until, elapsed time.Duration // real time that a wait of 2 h takes: for a time of day, for a duration
	}{
		{"no jump", 0, 2 * hour, 2 * hour},
		{"30 minutes ahead", 30 * time.Minute, 90 * time.Minute, 90 * time.Minute},
		{"past the end", 3 * hour, time.Minute, time.Minute},
		{"an hour back", -hour, 3 * hour, 2 * hour},
		{"less than a second", 900 * time.Millisecond, 2 * hour, 2 * hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wall := &wallClock{}
				cal := NewCalendar(wall.now)
				ctx, cancel := context.WithCancel(t.Context())
				go cal.Watch(ctx, slog.New(slog.NewTextHandler(io.Discard, nil)))
				begin := time.Now()
				due := cal.Now().Add(2 * hour)
				took := func(wait func(context.Context, time.Time) error) chan time.Duration {
					done := make(chan time.Duration, 1)
					go func() {
						if err := wait(ctx, due); err != nil {
							t.Error(err)
						}
						done <- time.Since(begin)
					}()
					return done
				}
				until, elapsed := took(cal.WaitUntil), took(cal.WaitFor)
				time.Sleep(time.Minute)
				wall.jump(c.jump)
				// A watch that compares every few seconds is late by no more than that.
				check := func(what string, got, want time.Duration) {
					if got < want-calendarDrift || got > want+calendarInterval {
						t.Errorf("%s took %s, want %s", what, got, want)
					}
				}
				check("the wait for a time of day", <-until, c.until)
				check("the wait for a duration", <-elapsed, c.elapsed)
				if n := len(cal.timers); n > 0 {
					t.Errorf("%d timers are left", n)
				}
				cancel()
			})
		})
	}
}

var errCause = errors.New("cause")

// TestCalendarEndsWithContext: a wait that is cancelled returns the cause at once
// and leaves no timer.
func TestCalendarEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cal := NewCalendar(nil)
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error)
		go func() { done <- cal.WaitUntil(ctx, cal.Now().Add(time.Hour)) }()
		synctest.Wait()
		cancel(errCause)
		if err := <-done; err != errCause {
			t.Errorf("%v", err)
		}
		if len(cal.timers) > 0 {
			t.Error("a timer is left")
		}
	})
}

// TestCalendarSeesJumpsBeforeItsWatch: a clock that jumps behind the first timer and before the watch begins is one that jumped.
func TestCalendarSeesJumpsBeforeItsWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wall := &wallClock{}
		cal := NewCalendar(wall.now)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		begin, done := time.Now(), make(chan error)
		go func() { done <- cal.WaitFor(ctx, cal.Now().Add(2*time.Hour)) }()
		synctest.Wait()
		wall.jump(3 * time.Hour)
		go cal.Watch(ctx, slog.New(slog.DiscardHandler))
		if err := <-done; err != nil || time.Since(begin) > calendarInterval {
			t.Errorf("after %s: %v", time.Since(begin), err)
		}
	})
}
