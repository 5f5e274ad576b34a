package immediate_test

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
	"github.com/sentinel-runtime/sentinel/triggers/immediate"
)

// life is what happens to a trigger; each step arms it anew.
type life struct {
	t     *testing.T
	on    string
	state json.RawMessage
	keys  []string
}

// arm runs the trigger as one revision of its definition has it and returns the
// data of what it fired, one after the other. crash loses the record.
func (l *life) arm(revision int, starting, crash bool) string {
	l.t.Helper()
	time.Sleep(time.Minute) // no two starts are at the same time
	trigger := sentinels.Trigger{Type: "immediate"}
	if l.on != "" {
		trigger.Options = json.RawMessage(fmt.Sprintf(`{"on":%q}`, l.on))
	}
	a, err := immediate.New(immediate.Options{}).Arm(trigger, triggers.Env{Sentinel: "a", Revision: revision, Starting: starting, State: l.state})
	if err != nil {
		l.t.Fatal(err)
	}
	var out []string
	var again []string
	for range 2 { // run again it must not fire again
		ctx, cancel := context.WithCancel(l.t.Context())
		done := make(chan error)
		go func() {
			done <- a.Run(ctx, func(_ context.Context, f triggers.Fire) (triggers.Admission, error) {
				if slices.Contains(l.keys, f.Key) {
					out = append(out, "duplicate")
					return triggers.Admission{Outcome: triggers.Duplicate}, nil
				}
				l.keys = append(l.keys, f.Key)
				out = append(out, string(f.Event.Data))
				if !crash {
					l.state = f.State
				}
				return triggers.Admission{Outcome: triggers.Started}, nil
			})
		}()
		synctest.Wait()
		cancel()
		if err := <-done; err != nil {
			l.t.Error(err)
		}
		again, out = append(again, out...), nil
	}
	return strings.Join(again, " ")
}

// TestT3 shows clause T3: when each way of firing at once fires.
func TestT3(t *testing.T) {
	fired := func(occasion string, revision int) string {
		return fmt.Sprintf(`{"occasion":%q,"revision":%d}`, occasion, revision)
	}
	created := fired("create", 1)
	for on, want := range map[string][]string{
		"":       {created, "duplicate", "", "", ""},
		"create": {created, "duplicate", "", "", ""},
		"edit":   {created, "duplicate", "", fired("edit", 2), ""},
		"start":  {created, "duplicate", fired("start", 1), "", fired("start", 2)},
	} {
		t.Run("on "+on, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &life{t: t, on: on}
				got := []string{
					l.arm(1, false, true), // created, and a crash before the record that it fired
					func() string { // with the key known the fire is a duplicate, recorded now
						out := l.arm(1, true, false)
						l.state = json.RawMessage(`{"revision":1}`)
						return out
					}(),
					l.arm(1, true, false),  // a start of the host
					l.arm(2, false, false), // an edit
					l.arm(2, true, false),  // a start
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestUndecidedFiresAgain(t *testing.T) {
	a, err := immediate.New(immediate.Options{}).Arm(sentinels.Trigger{Type: "immediate"}, triggers.Env{})
	if err != nil {
		t.Fatal(err)
	}
	tries := 0
	for want := range 2 {
		err := a.Run(t.Context(), func(context.Context, triggers.Fire) (triggers.Admission, error) {
			tries++
			return triggers.Admission{}, errors.New("disk is full")
		})
		if err == nil || tries != want+1 {
			t.Errorf("try %d: %v", tries, err)
		}
	}
}

func TestCheck(t *testing.T) {
	k := immediate.New(immediate.Options{})
	for options, want := range map[string]string{`{"on":"never"}`: "create, edit or start", `{"once":true}`: "unknown option", `{"on":["edit"]}`: "cannot be a"} {
		if err := k.Check(sentinels.Trigger{Type: "immediate", Options: json.RawMessage(options)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", options, err, want)
		}
	}
	if _, err := k.Arm(sentinels.Trigger{}, triggers.Env{State: json.RawMessage(`3`)}); err == nil {
		t.Error("a bad state is no error")
	}
}
