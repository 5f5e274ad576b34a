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

// fakeHost keeps what the runtime stores of one trigger while it is armed again
// and again.
type fakeHost struct {
	t     *testing.T
	on    string
	state json.RawMessage
	keys  []string
}

// arm arms the trigger of a revision, runs it twice, and returns the event data
// of its firings. crash loses the state of the firing, but not its key.
func (h *fakeHost) arm(revision int, starting, crash bool) string {
	h.t.Helper()
	time.Sleep(time.Minute) // no two starts have the same time
	trigger := sentinels.Trigger{Type: "immediate"}
	if h.on != "" {
		trigger.Options = json.RawMessage(fmt.Sprintf(`{"on":%q}`, h.on))
	}
	a, err := immediate.New(immediate.Options{}).Arm(trigger, triggers.Env{Sentinel: "a", Revision: revision, Starting: starting, State: h.state})
	if err != nil {
		h.t.Fatal(err)
	}
	var out []string
	var again []string
	for range 2 { // the second Run must not fire again
		ctx, cancel := context.WithCancel(h.t.Context())
		done := make(chan error)
		go func() {
			done <- a.Run(ctx, func(_ context.Context, f triggers.Firing) (triggers.Admission, error) {
				if slices.Contains(h.keys, f.Key) {
					out = append(out, "duplicate")
					return triggers.Admission{Outcome: triggers.Duplicate}, nil
				}
				h.keys = append(h.keys, f.Key)
				out = append(out, string(f.Event.Data))
				if !crash {
					h.state = f.State
				}
				return triggers.Admission{Outcome: triggers.Started}, nil
			})
		}()
		synctest.Wait()
		cancel()
		if err := <-done; err != nil {
			h.t.Error(err)
		}
		again, out = append(again, out...), nil
	}
	return strings.Join(again, " ")
}

// TestT3 covers clause T3: the firings with each value of on.
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
				h := &fakeHost{t: t, on: on}
				got := []string{
					h.arm(1, false, true), // created; the state is lost in a crash
					func() string { // the key is known, so the firing is a duplicate
						out := h.arm(1, true, false)
						h.state = json.RawMessage(`{"revision":1}`)
						return out
					}(),
					h.arm(1, true, false),  // a start of the host
					h.arm(2, false, false), // an edit
					h.arm(2, true, false),  // a start
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
	attempts := 0
	for want := range 2 {
		err := a.Run(t.Context(), func(context.Context, triggers.Firing) (triggers.Admission, error) {
			attempts++
			return triggers.Admission{}, errors.New("disk is full")
		})
		if err == nil || attempts != want+1 {
			t.Errorf("attempt %d: %v", attempts, err)
		}
	}
}

func TestCheck(t *testing.T) {
	k := immediate.New(immediate.Options{})
	for options, want := range map[string]string{`{"on":"never"}`: `invalid on "never": want create, edit or start`, `{"once":true}`: "unknown option", `{"on":["edit"]}`: "is an array, want a string"} {
		if err := k.Check(sentinels.Trigger{Type: "immediate", Options: json.RawMessage(options)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", options, err, want)
		}
	}
	if _, err := k.Arm(sentinels.Trigger{}, triggers.Env{State: json.RawMessage(`3`)}); err == nil {
		t.Error("Arm accepted a bad state")
	}
}
