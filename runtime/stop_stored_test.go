package runtime_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// heldInside hangs within a branch, a loop and a group, each with lists that follow its end.
const heldInside = `{"name":"held","steps":[
	{"type":"parallel","branches":{
		"done":[{"command":"test/echo","params":{"branch":"done"}}],
		"held":[{"type":"loop","each":[1,2],"steps":[
			{"command":"test/echo","params":{"item":"$item"}},
			{"type":"group","steps":[{"command":"test/hang"},{"command":"test/echo","params":{"never":1}}],
				"onFailure":[{"command":"test/echo","params":{"inner":"$result.error.code"}}]},
			{"command":"test/echo","params":{"never":2}}],
			"finally":[{"command":"test/echo","params":{"loop":"$result.status","item":"$item"}}]}]}},
	{"command":"test/echo","params":{"never":3}}],
	"onFailure":[{"command":"test/echo","params":{"failed":"$result.error.message"}}],
	"finally":[{"command":"test/echo","params":{"run":"$result.status"}}]}`

// TestStopOfStoredRun: a run that no process executes is stopped by the process that is asked to, with onFailure and
// finally of the steps that a crash left and of the definition, from the inside to the outside, wherever the crash was.
// Nothing else of the run is executed.
func TestStopOfStoredRun(t *testing.T) {
	opt := func() (runtime.Options, *scriptedHost) {
		s := &scriptedHost{Commands: map[string][]response{"test/hang": {{Hang: true}}}}
		return runtime.Options{Commands: s, Limits: runtime.Limits{Crashes: 1000}}, s
	}
	f := newRecordingStore()
	o, _ := opt()
	seen := newWatcher()
	o.Observer.Progress = seen.progress
	rt := openBuiltin(t, f, o)
	id := start(t, rt, heldInside, runtime.StartOptions{Workspace: "/w"})
	if _, ok := seen.await(action{On: moment{Event: runtime.OnCallStart, Label: "test/hang"}}, 0); !ok {
		t.Fatal("it does not hang")
	}
	end := f.length()
	f = f.prefix(t, end)
	rt.Close()
	first := f.after(t, 1, kind(journal.RunStart))
	step := 1
	if testing.Short() {
		step = 3
	}
	for n := end; n >= first; n -= step {
		o, s := opt()
		rt := openBuiltin(t, f.prefix(t, n), o)
		if err := rt.Stop(within(t), id); err != nil {
			t.Fatalf("crash behind batch %d: %v", n, err)
		}
		res := wait(t, rt, id)
		rt.Close()
		if res.Status != sentinels.StatusStopped || res.Error == nil || res.Error.Message != "run was stopped" || res.Finally != nil {
			t.Errorf("crash behind batch %d: %s %v, finally %v", n, res.Status, res.Error, res.Finally)
		}
		got := s.happened()
		for _, call := range []string{`{"failed":"run was stopped"}`, `{"run":"stopped"}`} {
			if c := slices.IndexFunc(got, func(g string) bool { return strings.Contains(g, call) }); c < 0 {
				t.Errorf("crash behind batch %d: no %s in %q", n, call, got)
			}
		}
		if all := strings.Join(got, "\n"); strings.Contains(all, "never") || strings.Contains(all, "hang") || strings.Contains(all, "branch") {
			t.Errorf("crash behind batch %d: %q", n, got)
		}
		if n == end {
			want := []string{`test/echo {"failed":"run was stopped"}`, `test/echo {"inner":"cancelled"}`, `test/echo {"item":1,"loop":"stopped"}`, `test/echo {"run":"stopped"}`}
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
	}
}

// TestStopOfARunThatCannotBeTakenOver: it ends, and its summary says that its finally was not executed.
func TestStopOfARunThatCannotBeTakenOver(t *testing.T) {
	f := newRecordingStore()
	rt := openBuiltin(t, f, runtime.Options{Commands: &scriptedHost{}})
	id := start(t, rt, `{"name":"p","steps":[{"type":"wait","event":"never"}],"finally":[{"command":"test/echo"}]}`, runtime.StartOptions{Workspace: "/w"})
	f = crashed(t, f, rt)
	s := &scriptedHost{}
	rt = openBuiltin(t, f, runtime.Options{Commands: s, WorkspaceExists: func(string) bool { return false }})
	if err := rt.Stop(within(t), id); err != nil {
		t.Fatal(err)
	}
	info := status(t, rt, id)
	if info.Status != sentinels.StatusStopped || info.Finally == nil || !strings.Contains(info.Finally.Message, "were not executed: ") || !strings.Contains(info.Finally.Message, "the workspace /w of run") {
		t.Errorf("%s, finally %v", info.Status, info.Finally)
	}
	if calls := s.happened(); len(calls) != 0 {
		t.Errorf("executed: %q", calls)
	}
}
