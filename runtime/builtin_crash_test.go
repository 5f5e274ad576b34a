package runtime_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// allBuiltins uses every built-in step type that needs no decision of a person.
const allBuiltins = `{"name":"all","steps":[
	{"type":"loop","each":["x","y"],"as":"it","steps":[
		{"command":"test/act","params":{"n":"$it"},"outputTo":"act"},
		{"type":"condition","check":"$it === 'y'","then":[{"type":"shell","command":"echo $it","outputTo":"line"}],"else":[{"type":"emit","event":"seen","data":"$it"}]}],"outputTo":"loop"},
	{"type":"parallel","branches":[
		[{"type":"llm","prompt":"work","tools":["test/echo"],"maxTurns":4,"outputTo":"agent"}],
		[{"type":"wait","event":"seen","outputTo":"ev"},{"type":"wait","durationMs":1}],
		[{"type":"sentinel","definition":{"name":"kid","steps":[{"command":"test/act","params":{"n":"kid"},"outputTo":"k"},{"command":"missing/command","onError":"skip","outputTo":"no"}],"loop":{"type":"count","max":2}},"outputTo":"kid"}]],"outputTo":"par"},
	{"command":"test/note","params":{"n":"$iteration"},"outputTo":"note"}],"loop":{"type":"once"},"safety":{"onInterrupt":"retry"}}`

func anyResponses() *scriptedHost {
	return &scriptedHost{
		Recalled: true,
		Commands: map[string][]response{"test/act": {{Result: []byte(`{"done":true}`)}}},
		Model: []response{
			{ToolCalls: []sentinels.ToolCall{{ID: "1", Name: "test/echo", Arguments: []byte(`{"n":1}`)}}},
			{Text: "finished"},
		},
	}
}

// TestCrashAnywhereWithBuiltins goes on from the states that crashes leave with
// the real guests: each replays to where it was, from its own records alone.
func TestCrashAnywhereWithBuiltins(t *testing.T) {
	if testing.Short() {
		t.Skip("compiled guests are replayed a hundred times")
	}
	opt := func() runtime.Options {
		s := anyResponses()
		return runtime.Options{Commands: s, Models: s, OnInterrupt: sentinels.InterruptRetry, Limits: runtime.Limits{Crashes: 1000}}
	}
	f := newRecordingStore()
	rt := openBuiltin(t, f, opt())
	id := start(t, rt, allBuiltins, runtime.StartOptions{Workspace: "/w"})
	want := mask(renderResult(t, wait(t, rt, id)))
	if !strings.HasPrefix(want, "all completed") {
		t.Fatalf("without a crash: %s", want)
	}
	rt.Close()
	for n := f.after(t, 1, kind(journal.RunStart)); n < f.length(); n += 3 {
		rt := openBuiltin(t, f.prefix(t, n), opt())
		if !status(t, rt, id).Status.Final() {
			if err := rt.Resume(within(t), id, runtime.ResumeOptions{}); err != nil {
				t.Fatalf("crash behind batch %d: %v", n, err)
			}
		}
		got := mask(renderResult(t, wait(t, rt, id)))
		rt.Close()
		if diff := cmp.Diff(lines(want), lines(got)); diff != "" {
			t.Errorf("crash behind batch %d (-want +got):\n%s", n, diff)
		}
	}
}

// lines leaves out the number of model calls: one in doubt is made again.
func lines(s string) []string {
	var kept []string
	for _, line := range strings.Split(s, "\n") {
		if !strings.HasPrefix(line, "all completed") {
			kept = append(kept, line)
		}
	}
	return kept
}
