package cron_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
	"github.com/sentinel-runtime/sentinel/triggers/cron"
)

// fakeHost admits the firings of a schedule. Its clock can be set.
type fakeHost struct {
	mu     sync.Mutex
	set    time.Duration // wall clock minus elapsed time
	state  json.RawMessage
	fires  []triggers.Firing
	at     []time.Time // when each of fires was admitted
	refuse int         // number of next firings that fail undecided
}

func (h *fakeHost) now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Now().Add(h.set)
}

func (h *fakeHost) fire(_ context.Context, f triggers.Firing) (triggers.Admission, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refuse > 0 {
		h.refuse--
		return triggers.Admission{}, errors.New("disk is full")
	}
	h.fires, h.at, h.state = append(h.fires, f), append(h.at, time.Now()), f.State
	return triggers.Admission{Outcome: triggers.Started}, nil
}

// take returns the firings since the last call, one line each: planned time,
// +delay, -missed.
func (h *fakeHost) take() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []string
	for i, f := range h.fires {
		line := f.At.UTC().Format(time.TimeOnly)
		if late := h.at[i].Add(h.set).Sub(f.At); late != 0 {
			line += " +" + late.String()
		}
		if f.Missed != 0 {
			line += fmt.Sprintf(" -%d", f.Missed)
		}
		out = append(out, line)
	}
	h.fires, h.at = nil, nil
	return out
}

var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // when synctest's clock starts

func (h *fakeHost) arm(t *testing.T, expression, options string) triggers.Armed {
	t.Helper()
	trigger := sentinels.Trigger{Type: "schedule", CronExpression: expression, Options: json.RawMessage(options)}
	k := cron.New(cron.Options{})
	if err := k.Check(trigger); err != nil {
		t.Fatal(err)
	}
	a, err := k.Arm(trigger, triggers.Env{Sentinel: "a", Name: "schedule-1", Since: epoch, State: h.state, Now: h.now})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// run arms and runs a schedule for a while, as one process of a host does.
func (h *fakeHost) run(t *testing.T, up time.Duration, expression, options string) []string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	a := h.arm(t, expression, options)
	go func() { done <- a.Run(ctx, h.fire) }()
	time.Sleep(up)
	synctest.Wait()
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
	return h.take()
}

func want(t *testing.T, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fires (-want +got):\n%s", diff)
	}
}

func TestFiresOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := new(fakeHost)
		want(t, h.run(t, 35*time.Minute, "*/10 * * * *", `{"timeZone":"UTC"}`), "00:10:00", "00:20:00", "00:30:00")
	})
}

func TestEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := new(fakeHost)
		a := h.arm(t, "CRON_TZ=Asia/Tokyo 0 10 * * *", "")
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Minute)
		defer cancel()
		if err := a.Run(ctx, h.fire); err != nil {
			t.Fatal(err)
		}
		f := h.fires[0]
		planned := epoch.Add(time.Hour)
		if f.Key != "2000-01-01T01:00:00Z" || !f.At.Equal(planned) || f.Event.Name != "schedule" || f.Event.Source != "/sentinels/a" || f.Event.ID == "" {
			t.Errorf("%+v %+v", f, f.Event)
		}
		const data = `{"scheduled":"2000-01-01T01:00:00Z","fired":"2000-01-01T01:00:00Z","missed":0,"expression":"CRON_TZ=Asia/Tokyo 0 10 * * *"}`
		if string(f.Event.Data) != data {
			t.Errorf("data %s", f.Event.Data)
		}
	})
}

// TestT5CatchUp covers clause T5.1: planned times in a downtime.
func TestT5CatchUp(t *testing.T) {
	all := []string{}
	for i := range 100 {
		at := epoch.Add(20*time.Hour + time.Duration(i+21)*time.Minute)
		line := at.Format(time.TimeOnly)
		if late := epoch.Add(22 * time.Hour).Sub(at); late > 0 {
			line += " +" + late.String()
		}
		all = append(all, line)
	}
	all[0] += " -1219"
	for _, c := range []struct {
		name, expression, options string
		want                      []string // after being down from 00:01:30 to 22:00:00, until 22:01:30
	}{
		{"last is the default", "* * * * *", ``, []string{"22:00:00 -1318", "22:01:00"}},
		{"last", "0 12 * * *", `{"catchUp":"last"}`, []string{"12:00:00 +10h0m0s"}},
		{"none", "30 */6 * * *", `{"catchUp":"none"}`, nil},
		{"none, one on time", "* * * * *", `{"catchUp":"none"}`, []string{"22:00:00 -1318", "22:01:00"}},
		{"none, counted later", "1 6,22 * * *", `{"catchUp":"none"}`, []string{"22:01:00 -1"}},
		{"all", "30 */6 * * *", `{"catchUp":"all"}`, []string{"00:30:00 +21h30m0s", "06:30:00 +15h30m0s", "12:30:00 +9h30m0s", "18:30:00 +3h30m0s"}},
		{"all is bounded", "* * * * *", `{"catchUp":"all"}`, append(all[:len(all):len(all)], "22:01:00")},
		{"a window of four hours", "30 */6 * * *", `{"catchUp":"all","catchUpWindowMs":14400000}`, []string{"18:30:00 +3h30m0s -3"}},
		{"a window that has passed", "30 12 * * *", `{"catchUpWindowMs":14400000}`, nil},
		{"an interval", "@every 7h", ``, []string{"21:00:00 +59m59.952s -2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := new(fakeHost)
				options := c.options
				expression := c.expression
				if expression[0] != '@' {
					expression = "TZ=UTC " + expression
				}
				h.run(t, 90*time.Second, expression, options)
				time.Sleep(22*time.Hour - 90*time.Second)
				want(t, h.run(t, 90*time.Second, expression, options), c.want...)
			})
		})
	}
}

// TestT4IntervalsAreSpread: triggers of an interval that were armed together do not fire together, each of them
// fires once an interval, and a restart shifts none.
func TestT4IntervalsAreSpread(t *testing.T) {
	for _, c := range []struct {
		expression       string
		every, most      time.Duration // latest offset
		slice            time.Duration
		atOnce, triggers int // most in a slice
	}{
		{"@every 1s", time.Second, time.Second, 50 * time.Millisecond, 25, 200},
		{"@every 5m", 5 * time.Minute, 30 * time.Second, time.Second, 20, 200},
		{"@every 24h", 24 * time.Hour, time.Minute, 2 * time.Second, 20, 200},
	} {
		t.Run(c.expression, func(t *testing.T) {
			slices := map[time.Duration]int{}
			for i := range c.triggers {
				arm := func(since time.Time, state string) triggers.Planner {
					a, err := cron.New(cron.Options{}).Arm(sentinels.Trigger{Type: "schedule", CronExpression: c.expression},
						triggers.Env{Sentinel: sentinels.ID(fmt.Sprint("agent-", i)), Name: "schedule-1", Since: since, State: json.RawMessage(state), Now: func() time.Time { return epoch }})
					if err != nil {
						t.Fatal(err)
					}
					return a.(triggers.Planner)
				}
				first := arm(epoch, "").Next(epoch)
				offset := first.Sub(epoch) - c.every
				if offset < 0 || offset >= c.most {
					t.Errorf("trigger %d: first after %v", i, first.Sub(epoch))
				}
				slices[offset/c.slice]++
				again := arm(epoch, fmt.Sprintf(`{"planned":%q}`, first.Format(time.RFC3339Nano))).Next(first)
				if again.Sub(first) != c.every {
					t.Errorf("trigger %d: %v after the first firing, over a restart", i, again.Sub(first))
				}
			}
			for at, n := range slices {
				if n > c.atOnce {
					t.Errorf("%d of %d triggers within %v at %v", n, c.triggers, c.slice, at*c.slice)
				}
			}
		})
	}
}

// TestCrashRepeatsTheSameKey checks that a crash that loses the state of a firing
// repeats only this firing, with the same key.
func TestCrashRepeatsTheSameKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := new(fakeHost)
		h.run(t, 90*time.Second, "TZ=UTC * * * * *", "")
		before := h.state
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := h.arm(t, "TZ=UTC * * * * *", "").Run(ctx, h.fire); err != nil {
			t.Fatal(err)
		}
		first := h.fires[0]
		h.fires, h.at, h.state = nil, nil, before // as if a crash lost the state
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := h.arm(t, "TZ=UTC * * * * *", "").Run(ctx, h.fire); err != nil {
			t.Fatal(err)
		}
		if len(h.fires) != 1 || h.fires[0].Key != first.Key || h.fires[0].Event.ID != first.Event.ID {
			t.Errorf("%+v, want the key %s again", h.fires, first.Key)
		}
	})
}

// TestUndecidedFiresAgain checks that Run returns the error of an undecided
// firing, and fires again when called again.
func TestUndecidedFiresAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &fakeHost{refuse: 1}
		a := h.arm(t, "TZ=UTC 10 * * * *", "")
		if err := a.Run(t.Context(), h.fire); err == nil || !strings.Contains(err.Error(), "disk is full") {
			t.Fatalf("Run: %v", err)
		}
		time.Sleep(2 * time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := a.Run(ctx, h.fire); err != nil {
			t.Fatal(err)
		}
		want(t, h.take(), "02:10:00 -2") // two newer planned times have passed meanwhile
	})
}

// TestT5ClockIsSet covers clauses T5.2 and T5.4: a clock that is set back repeats
// nothing, and one that is set forward counts as downtime.
func TestT5ClockIsSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := new(fakeHost)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		a := h.arm(t, "TZ=UTC */5 * * * *", "")
		go func() { done <- a.Run(ctx, h.fire) }()
		sleep := func(d time.Duration) { time.Sleep(d); synctest.Wait() }
		set := func(d time.Duration) { h.mu.Lock(); h.set += d; h.mu.Unlock() }
		sleep(11 * time.Minute) // 00:11
		want(t, h.take(), "00:05:00", "00:10:00")
		set(-8 * time.Minute) // 00:03
		sleep(11 * time.Minute)
		if got := a.(triggers.Planner).Next(h.now()); !got.Equal(epoch.Add(15 * time.Minute)) {
			t.Errorf("next is %s", got)
		}
		want(t, h.take()) // 00:14
		sleep(2 * time.Minute)
		want(t, h.take(), "00:15:00") // 00:16
		set(time.Hour)                // 01:16
		sleep(31 * time.Second)
		got := h.take()
		if len(got) != 1 || !strings.HasPrefix(got[0], "01:15:00 +") || !strings.HasSuffix(got[0], " -11") {
			t.Errorf("after a jump forward: %q", got)
		}
		set(100 * 24 * time.Hour) // a clock that is wrong by more than a day
		sleep(time.Minute)
		h.take()
		set(-100 * 24 * time.Hour)
		sleep(5 * time.Minute)
		if got := h.take(); len(got) != 1 || got[0] != "01:20:00" {
			t.Errorf("after the clock was wrong: %q", got)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestT4Jitter covers clause T4.8: jitter is limited, repeatable, and keeps the
// order.
func TestT4Jitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		options := `{"jitterMs":3600000}` // more than the interval
		h := new(fakeHost)
		first := h.run(t, 30*time.Minute, "TZ=UTC * * * * *", options)
		if len(first) < 28 || len(first) > 30 {
			t.Fatalf("%d fires: %q", len(first), first)
		}
		spread := map[string]bool{}
		for i, line := range first {
			at, late, _ := strings.Cut(line, " +")
			if want := epoch.Add(time.Duration(i+1) * time.Minute).Format(time.TimeOnly); at != want {
				t.Errorf("fire %d is %s, want %s", i, at, want)
			}
			d, err := time.ParseDuration(late)
			if err != nil || d < 0 || d >= time.Minute {
				t.Errorf("%s is late by %q", at, late)
			}
			spread[late] = true
		}
		if len(spread) < 25 {
			t.Errorf("%d different delays", len(spread))
		}
		a := (&fakeHost{}).arm(t, "TZ=UTC * * * * *", options).(triggers.Planner)
		at, late, _ := strings.Cut(first[4], " +")
		d, _ := time.ParseDuration(late)
		planned, _ := time.Parse(time.TimeOnly, at)
		due := epoch.Add(planned.Sub(time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)) + d)
		for _, from := range []time.Time{due.Add(-time.Millisecond), due.Add(-d)} {
			if got := a.Next(from); !got.Equal(due) {
				t.Errorf("Next(%s) is %s, want %s", from, got, due)
			}
		}
		if got := a.Next(due); !got.After(due) {
			t.Errorf("Next(%s) is %s", due, got)
		}
	})
}

func TestKindCheck(t *testing.T) {
	k := cron.New(cron.Options{})
	check := func(expression, options string) error {
		return k.Check(sentinels.Trigger{Type: "schedule", CronExpression: expression, Options: json.RawMessage(options)})
	}
	for _, options := range []string{``, `{}`, `{"timeZone":"Europe/Berlin","catchUp":"all","catchUpWindowMs":60000,"jitterMs":5000,"debounceMs":5}`} {
		if err := check("0 9 * * *", options); err != nil {
			t.Errorf("%s: %v", options, err)
		}
	}
	for _, c := range [][3]string{
		{"0 9 * * *", `{"timezone":"UTC"}`, `unknown option "timezone", did you mean "timeZone"`},
		{"0 9 * * *", `{"timeZone":"Mars/Base"}`, `unknown time zone "Mars/Base"`},
		{"TZ=UTC 0 9 * * *", `{"timeZone":"UTC"}`, `both in the expression and in timeZone`},
		{"0 9 * * *", `{"catchUp":"some"}`, `invalid catchUp "some": want none, last or all`},
		{"0 9 * * *", `{"jitterMs":-1}`, `invalid jitterMs -1`},
		{"0 9 * * *", `{"jitterMs":86400001}`, `invalid jitterMs 86400001`},
		{"0 9 * * *", `{"catchUpWindowMs":-5}`, `invalid catchUpWindowMs -5`},
		{"0 9 * * *", `{"catchUp":3}`, `option "catchUp" is a number, want a string`},
		{"0 25 * * *", ``, `invalid hour "25": want 0 to 23`},
		{"0 9 * * 8", ``, `invalid day of the week "8"`},
		{"1,,2 9 * * *", ``, `invalid minute "1,,2"`},
		{"+1 9 * * *", ``, `invalid minute "+1"`},
		{"0 9 * *", ``, `4 fields: want five`},
		{"@reboot", ``, `"immediate" with "on": "start"`},
		{"@evry 5m", ``, `unknown descriptor "@evry 5m"`},
		{"@every soon", ``, `invalid duration "soon"`},
		{"TZ=UTC @every 5ms", ``, `interval is shorter than one second`},
		{"@every 1000000h", ``, `interval is longer than ten years`},
		{"@every 1.0000001s", ``, `not a whole number of milliseconds`},
		{"", ``, `cron expression: empty`},
	} {
		if err := check(c[0], c[1]); err == nil || !strings.Contains(err.Error(), c[2]) {
			t.Errorf("%s %s: %v, want %q", c[0], c[1], err, c[2])
		}
	}
}

func TestBadState(t *testing.T) {
	k := cron.New(cron.Options{})
	_, err := k.Arm(sentinels.Trigger{Type: "schedule", CronExpression: "@daily"}, triggers.Env{State: json.RawMessage(`7`)})
	if err == nil || !strings.Contains(err.Error(), "read state of schedule") {
		t.Error(err)
	}
}

// TestNextWithoutRun checks that Next works for a trigger that has not run.
func TestNextWithoutRun(t *testing.T) {
	a, err := cron.New(cron.Options{}).Arm(sentinels.Trigger{Type: "schedule", CronExpression: "CRON_TZ=UTC 0 9 * * *"}, triggers.Env{})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2030, 5, 5, 9, 0, 0, 0, time.UTC)
	if got := a.(triggers.Planner).Next(at); !got.Equal(at.Add(24 * time.Hour)) {
		t.Errorf("next is %s", got)
	}
}

// TestNextInZone: planned times follow each other by Next, with jitter too, and are in the
// zone of the schedule, so that they show the times that its author wrote.
func TestNextInZone(t *testing.T) {
	h, from := new(fakeHost), time.Date(2026, 3, 27, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		options string
		jitter  time.Duration
	}{{`{"timeZone":"Europe/Berlin"}`, 0}, {`{"timeZone":"Europe/Berlin","jitterMs":600000}`, 10 * time.Minute}} {
		at := from
		for _, planned := range []string{"2026-03-28T09:00:00+01:00", "2026-03-29T09:00:00+02:00", "2026-03-30T09:00:00+02:00"} {
			want, err := time.Parse(time.RFC3339, planned)
			if err != nil {
				t.Fatal(err)
			}
			at = h.arm(t, "0 9 * * *", tt.options).(triggers.Planner).Next(at)
			if d := at.Sub(want); d < 0 || d > tt.jitter || at.Hour() != 9 || at.Location().String() != "Europe/Berlin" {
				t.Errorf("%s: %s, want %s", tt.options, at, planned)
			}
		}
	}
	if at := h.arm(t, "@every 1h", `{}`).(triggers.Planner).Next(from); at.Location() != time.Local {
		t.Errorf("%s is not in the zone of the host", at)
	}
}
