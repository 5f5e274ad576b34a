package events_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
	"github.com/sentinel-runtime/sentinel/triggers/events"
)

// fakeLog is an event log in memory.
type fakeLog struct {
	all     []sentinels.Event // position is index + 1
	removed uint64            // positions up to this one were removed
	added   chan struct{}
	err     error
}

func newLog() *fakeLog { return &fakeLog{added: make(chan struct{}, 100)} }

func (l *fakeLog) add(names ...string) {
	for _, n := range names {
		l.all = append(l.all, sentinels.Event{ID: fmt.Sprint(len(l.all)), Name: n, Source: "/runs/r", Time: time.Unix(int64(len(l.all)), 0)})
		l.added <- struct{}{}
	}
}

func (l *fakeLog) Next(ctx context.Context, pattern string, _ sentinels.EventSource, after uint64) (sentinels.Event, uint64, int, error) {
	lost := 0
	if after < l.removed {
		lost, after = int(l.removed-after), l.removed
	}
	for {
		if l.err != nil {
			return sentinels.Event{}, 0, 0, l.err
		}
		for ; after < uint64(len(l.all)); after++ {
			if e := l.all[after]; sentinels.MatchEvent(pattern, e.Name) {
				return e, after + 1, lost, nil
			}
		}
		select {
		case <-ctx.Done():
			return sentinels.Event{}, 0, lost, ctx.Err()
		case <-l.added:
		}
	}
}

func arm(t *testing.T, pattern string, env triggers.Env) triggers.Armed {
	t.Helper()
	a, err := events.New(events.Options{}).Arm(sentinels.Trigger{Type: "event", Event: pattern}, env)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// collect runs a trigger until it blocks, and returns its firings.
func collect(t *testing.T, a triggers.Armed, fire triggers.FireFunc) []triggers.Firing {
	t.Helper()
	var fires []triggers.Firing
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- a.Run(ctx, func(ctx context.Context, f triggers.Firing) (triggers.Admission, error) {
			if fire != nil {
				if adm, err := fire(ctx, f); err != nil {
					return adm, err
				}
			}
			fires = append(fires, f)
			return triggers.Admission{Outcome: triggers.Started}, nil
		})
	}()
	synctest.Wait()
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
	return fires
}

func names(fires []triggers.Firing) []string {
	var out []string
	for _, f := range fires {
		line := f.Event.Name + " " + f.Event.ID
		if f.Missed > 0 {
			line += fmt.Sprintf(" -%d", f.Missed)
		}
		out = append(out, line)
	}
	return out
}

// TestT6OrderAndPosition covers clauses T6.1 to T6.3.
func TestT6OrderAndPosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLog()
		l.add("git:push", "git:push")
		a := arm(t, "git:*", triggers.Env{Events: l, Positions: []uint64{1}}) // armed behind the first event
		l.add("chat:message", "git:tag", "git:push:forced", "git:push")
		fires := collect(t, a, nil)
		if diff := cmp.Diff([]string{"git:push 1", "git:tag 3", "git:push 5"}, names(fires)); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		f := fires[1]
		if f.Key != "7:/runs/r3" || !f.At.Equal(time.Unix(3, 0)) {
			t.Errorf("%+v", f)
		}
		// After a restart State decides, not Position.
		l.add("git:pull")
		a = arm(t, "git:*", triggers.Env{Events: l, Positions: []uint64{1}, State: f.State})
		if diff := cmp.Diff([]string{"git:push 5", "git:pull 6"}, names(collect(t, a, nil))); diff != "" {
			t.Errorf("after a restart (-want +got):\n%s", diff)
		}
		// Events that were removed from the log unread are counted once.
		l.removed = 5
		a = arm(t, "git:*", triggers.Env{Events: l, State: f.State})
		if diff := cmp.Diff([]string{"git:push 5 -1", "git:pull 6"}, names(collect(t, a, nil))); diff != "" {
			t.Errorf("after a loss (-want +got):\n%s", diff)
		}
	})
}

// twoLogs are the log of events and that of events of runs.
type twoLogs struct{ events, runs *fakeLog }

func (l twoLogs) Next(ctx context.Context, pattern string, source sentinels.EventSource, after uint64) (sentinels.Event, uint64, int, error) {
	if sentinels.IsRunEvent(pattern) {
		return l.runs.Next(ctx, pattern, source, after)
	}
	return l.events.Next(ctx, pattern, source, after)
}

// TestEventsOfBothLogs: a list may have patterns of both logs. Each log has a position of its own, which a firing of the
// other one keeps, and an event that was read while another one fired is not lost.
func TestEventsOfBothLogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := twoLogs{newLog(), newLog()}
		l.events.add("git:push", "git:push")
		l.runs.add("sentinel:x:failed", "sentinel:x:failed", "sentinel:x:failed")
		patterns := "git:* sentinel:x:failed git:push"
		a := arm(t, patterns, triggers.Env{Events: l, Positions: []uint64{1, 2}})
		fires := collect(t, a, nil)
		if diff := cmp.Diff([]string{"git:push 1", "sentinel:x:failed 2"}, slices.Sorted(slices.Values(names(fires)))); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		l.events.add("git:tag")
		l.runs.add("sentinel:y:failed", "sentinel:x:failed")
		a = arm(t, patterns, triggers.Env{Events: l, State: fires[1].State})
		fires = collect(t, a, nil)
		if diff := cmp.Diff([]string{"git:tag 2", "sentinel:x:failed 4"}, slices.Sorted(slices.Values(names(fires)))); diff != "" {
			t.Errorf("after a restart (-want +got):\n%s", diff)
		}
		// One firing is decided, then the host ends: the event of the other log fires again.
		l.events.add("git:last")
		l.runs.add("sentinel:x:failed")
		a = arm(t, patterns, triggers.Env{Events: l, State: fires[1].State})
		fired := false
		first := collect(t, a, func(ctx context.Context, _ triggers.Firing) (adm triggers.Admission, err error) {
			if fired {
				<-ctx.Done()
				return adm, ctx.Err()
			}
			fired = true
			return adm, nil
		})
		if len(first) != 1 {
			t.Fatalf("decided: %v", names(first))
		}
		a = arm(t, patterns, triggers.Env{Events: l, State: first[0].State})
		both := append(names(first[:1]), names(collect(t, a, nil))...)
		if diff := cmp.Diff([]string{"git:last 3", "sentinel:x:failed 5"}, slices.Sorted(slices.Values(both))); diff != "" {
			t.Errorf("after an end between two firings (-want +got):\n%s", diff)
		}
	})
}

func TestUndecidedFiresAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLog()
		l.add("a", "b")
		a := arm(t, "**", triggers.Env{Events: l})
		err := a.Run(t.Context(), func(context.Context, triggers.Firing) (triggers.Admission, error) {
			return triggers.Admission{}, errors.New("disk is full")
		})
		if err == nil || err.Error() != `fire event "a": disk is full` {
			t.Fatalf("Run: %v", err)
		}
		if diff := cmp.Diff([]string{"a 0", "b 1"}, names(collect(t, a, nil))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		l.err = errors.New("torn")
		if err := a.Run(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "read event log: torn") {
			t.Errorf("Run: %v", err)
		}
	})
}

func TestCheck(t *testing.T) {
	k := events.New(events.Options{})
	for _, c := range []struct{ event, options, want string }{
		{"git:push", "", ""},
		{"git:**", `{"debounceMs":100,"filter":"true"}`, ""},
		{"", "", "invalid event pattern"},
		{"git:**:x", "", "invalid event pattern"},
		{"git:push", `{"debounce":100}`, `did you mean "debounceMs"`},
	} {
		err := k.Check(sentinels.Trigger{Type: "event", Event: c.event, Options: json.RawMessage(c.options)})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q %s: %v, want %q", c.event, c.options, err, c.want)
		}
	}
	if _, err := k.Arm(sentinels.Trigger{Event: "a"}, triggers.Env{State: json.RawMessage(`"x"`)}); err == nil {
		t.Error("Arm accepted a bad state")
	}
	if err := arm(t, "a", triggers.Env{}).Run(t.Context(), nil); err == nil {
		t.Error("Run without an event log returned nil")
	}
}
