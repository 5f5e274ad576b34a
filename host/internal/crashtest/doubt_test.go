//go:build linux

package crashtest_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// deed is one program that must not run twice by itself, before and after
// others; deedBehind has it in the background.
const (
	deed = `{"name":"deed","steps":[
	{"type":"shell","command":"sh ./act.sh before 0.01 $iteration"},
	{"type":"shell","command":"sh ./hang.sh deed - $iteration","outputTo":"deed"},
	{"type":"shell","command":"sh ./act.sh after 0.01 $iteration"}],
	"safety":{"onInterrupt":"ask"}}`
	deedBehind = `{"name":"deed","steps":[
	{"type":"shell","command":"sh ./act.sh before 0.01 $iteration"},
	{"type":"command","command":"code/shell/execute","params":{"command":"sh ./hang.sh deed - $iteration","wait":false},"outputTo":"job"},
	{"type":"watch","executionId":"$job.executionId","outputTo":"deed"},
	{"type":"shell","command":"sh ./act.sh after 0.01 $iteration"}]}`
)

// TestDoubtAsks kills the host while a program that is not idempotent runs. The
// next host has a pending decision, does not repeat the program, has the decision again
// after another kill, and continues after the decision, also if that was made while no
// host was running.
func TestDoubtAsks(t *testing.T) {
	t.Cleanup(func() { noHelpers(t) })
	for _, c := range []struct {
		name, definition, verdict string
		result                    string
		starts                    int
		status                    sentinels.Status
		deed                      string // what the variable must hold
	}{
		{"retry", deed, "retry", "", 2, sentinels.StatusCompleted, `"success":true`},
		{"skip", deed, "skip", `{"success":true,"note":"by hand"}`, 1, sentinels.StatusCompleted, `"note":"by hand"`},
		{"fail", deed, "fail", "", 1, sentinels.StatusFailed, ""},
		{"retry in the background", deedBehind, "retry", "", 2, sentinels.StatusCompleted, `"success":true`},
		{"skip in the background", deedBehind, "skip", "", 1, sentinels.StatusCompleted, `"lost":true`},
		{"fail in the background", deedBehind, "fail", "", 1, sentinels.StatusFailed, ""},
	} {
		for _, ahead := range []bool{false, true} {
			name := c.name
			if ahead {
				name += ", decided without a host"
			}
			t.Run(name, func(t *testing.T) {
				if ahead && testing.Short() {
					t.Skip("kills of processes take long: skipped with -short")
				}
				t.Parallel()
				d := newDoubt(t, c.definition)
				d.cutOff(t)
				question := d.asked(t)
				d.order.Life++
				var result json.RawMessage
				if c.result != "" {
					result = json.RawMessage(c.result)
				}
				if ahead {
					d.order.Ahead = []runtime.Decision{{Call: question.Call, Verdict: c.verdict, Result: result, By: "test"}}
				} else {
					d.order.Verdict, d.order.Result = c.verdict, result
				}
				d.open(t)
				l := start(t, d.order, d.server)
				l.live(t, plan{}, nil)
				res := l.reports[len(l.reports)-1].Result
				if res == nil || res.Status != c.status {
					t.Fatalf("the run did not end as %s: %s", c.status, l.tail())
				}
				if c.status == sentinels.StatusFailed && abi.CodeOf(res.Error) != abi.Interrupted {
					t.Errorf("the run's error is %v", res.Error)
				}
				if got := string(res.Variables["deed"]); !strings.Contains(got, c.deed) {
					t.Errorf("deed = %s, want %s in it", got, c.deed)
				}
				d.started(t, "before", 1)
				d.started(t, "deed", c.starts)
				if c.status == sentinels.StatusCompleted {
					d.started(t, "after", 1)
				} else {
					d.started(t, "after", 0)
				}
				nothingLives(t, d.order.Workspace, d.order.Life)
			})
		}
	}
}

// TestSkippedOnce decides once that a background program stays away: later
// crashes do not ask again, not in a later iteration either.
func TestSkippedOnce(t *testing.T) {
	t.Cleanup(func() { noHelpers(t) })
	d := newDoubt(t, `{"name":"skipped","steps":[
		{"type":"command","command":"code/shell/execute","params":{"command":"sh ./hang.sh deed - $iteration","wait":false},"condition":"$iteration === 1"},
		{"type":"wait","durationMs":500}],"loop":{"type":"count","max":2}}`)
	d.cutOff(t)
	d.asked(t)
	d.order.Verdict = "skip"
	d.order.Life++
	second := false
	l := start(t, d.order, d.server)
	l.live(t, plan{after: afterSight, when: func() bool { return second }}, func(r report) {
		second = second || r.Progress != nil && r.Progress.Event == runtime.OnCallStart && r.Progress.Iteration == 2
	})
	if !l.killed {
		t.Fatalf("it ended by itself: %s", l.tail())
	}
	d.order.Verdict = "retry" // would be made if it asked
	d.order.Life++
	l = start(t, d.order, d.server)
	l.live(t, plan{}, nil)
	if res := l.reports[len(l.reports)-1].Result; res == nil || res.Status != sentinels.StatusCompleted {
		t.Errorf("it ended so: %s", l.tail())
	}
	for _, r := range l.reports {
		if r.Progress != nil && r.Progress.Decision != nil {
			t.Errorf("it asks again: %+v", r.Progress.Decision)
		}
	}
	d.started(t, "deed", 1)
}

// TestKillDuringProbe kills hosts while the probe of a program in the background is unanswered. The program is gone before
// the step begins again, by its own setting or after the decision of a person, and the run continues when the new one is ready.
func TestKillDuringProbe(t *testing.T) {
	t.Cleanup(func() { noHelpers(t) })
	for name, setting := range map[string]string{"retried by the step": `"onInterrupt":"retry",`, "decided": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDoubt(t, `{"name":"probed","steps":[
				{"type":"shell","command":"sh ./act.sh before 0.01 $iteration"},
				{"type":"shell","background":true,`+setting+`"command":"setsid sleep 600 & sh ./hang.sh deed - $iteration; exec sleep 600",
					"ready":{"match":"^did deed","timeoutMs":"5m"},"outputTo":"deed"},
				{"type":"shell","command":"sh ./act.sh after 0.01 $iteration"}]}`)
			d.order.Verdict, d.order.Crashes = "retry", 1000
			const kills = 2
			for ; d.order.Life <= kills; d.order.Life++ {
				l := start(t, d.order, d.server)
				l.live(t, plan{after: afterSight, when: func() bool { return d.count(t, "deed") == d.order.Life }}, nil)
				if !l.killed {
					t.Fatalf("life %d ended by itself: %s", d.order.Life, l.tail())
				}
				d.order.Run = look(t, filepath.Join(d.order.Dir, "state")).root
			}
			l := start(t, d.order, d.server)
			begun := false
			l.live(t, plan{after: afterSight, when: func() bool {
				if !begun && d.count(t, "deed") > kills {
					begun = true
					if found := strays(t, d.order.Workspace, kills); len(found) > 0 {
						t.Errorf("of killed hosts there are %v", found)
					}
					d.started(t, "after", 0)
					d.open(t)
				}
				return false
			}}, nil)
			res := l.reports[len(l.reports)-1].Result
			if res == nil || res.Status != sentinels.StatusCompleted || !strings.Contains(string(res.Variables["deed"]), `"running":true`) {
				t.Fatalf("the run did not complete with a program that is ready: %s", l.tail())
			}
			d.started(t, "before", 1)
			d.started(t, "deed", kills+1)
			d.started(t, "after", 1)
			asked := 0
			if text, err := os.ReadFile(filepath.Join(d.order.Workspace, "decisions")); err == nil {
				asked = strings.Count(string(text), "\n")
			}
			if want := map[string]int{"": kills}[setting]; asked != want {
				t.Errorf("a person was asked %d times, want %d", asked, want)
			}
			nothingLives(t, d.order.Workspace, d.order.Life)
		})
	}
}

// A doubt is a run whose host is killed in the middle of a deed.
type doubt struct {
	order  order
	server string
}

func newDoubt(t *testing.T, definition string) *doubt {
	t.Helper()
	dir := t.TempDir()
	d := &doubt{order: order{Dir: filepath.Join(dir, ".sentinel"), Workspace: filepath.Join(dir, "work"), Life: 1}, server: newModelServer(t).URL}
	if err := os.MkdirAll(d.order.Workspace, 0o700); err != nil {
		t.Fatal(err)
	}
	warmCache(t, d.order.Workspace)
	write(t, d.order.Workspace, definition)
	return d
}

// cutOff lets the first life begin the deed and kills it.
func (d *doubt) cutOff(t *testing.T) {
	t.Helper()
	l := start(t, d.order, d.server)
	begun := func() bool {
		return d.count(t, "deed") > 0 && l.recorded(runtime.OnCallEnd, "code/shell/execute", d.before(t))
	}
	l.live(t, plan{after: afterSight, when: begun}, nil)
	if !l.killed {
		t.Fatalf("the first life ended by itself: %s", l.tail())
	}
	s := look(t, filepath.Join(d.order.Dir, "state"))
	d.order.Run = s.root
}

// before is how many calls that start programs have their answer when the deed
// is under way.
func (d *doubt) before(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(d.order.Workspace, "kill.json"))
	if err != nil {
		t.Fatal(err)
	}
	deed, _, _ := strings.Cut(string(text), "hang.sh")
	n := strings.Count(deed, "act.sh")
	if strings.Contains(string(text), `"wait":false`) {
		n++ // it answers at once
	}
	return n
}

// recorded reports whether this many calls of a command were reported.
func (l *life) recorded(event runtime.ProgressKind, label string, want int) bool {
	n := 0
	for _, r := range l.reports {
		if r.Progress != nil && r.Progress.Event == event && r.Progress.Label == label {
			n++
		}
	}
	return n >= want
}

// asked lets the next life ask, kills it, and returns what is asked.
func (d *doubt) asked(t *testing.T) runtime.PendingDecision {
	t.Helper()
	d.order.Life++
	l := start(t, d.order, d.server)
	asking := false
	l.live(t, plan{after: afterSight, when: func() bool { return asking }}, func(r report) {
		asking = asking || r.Progress != nil && r.Progress.Decision != nil
	})
	if !l.killed {
		t.Fatalf("the second life did not wait: %s", l.tail())
	}
	s := look(t, filepath.Join(d.order.Dir, "state"))
	if s.status != sentinels.StatusWaiting || len(s.pending) != 1 || s.pending[0].Kind != runtime.DecisionDoubt {
		t.Fatalf("the run is %s with pending decisions %+v", s.status, s.pending)
	}
	d.started(t, "deed", 1)
	if found := strays(t, d.order.Workspace, 1); len(found) > 0 {
		t.Errorf("of the first life there are %v", found)
	}
	return s.pending[0]
}

// open lets the deed end.
func (d *doubt) open(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(d.order.Workspace, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (d *doubt) count(t *testing.T, name string) int {
	t.Helper()
	n := 0
	for _, r := range effects(t, d.order.Workspace) {
		if r.name == name {
			n++
		}
	}
	return n
}

func (d *doubt) started(t *testing.T, name string, want int) {
	t.Helper()
	if n := d.count(t, name); n != want {
		t.Errorf("program %s was started %d times, want %d", name, n, want)
	}
}
