package runtime_test

import (
	"encoding/json"
	"fmt"
	stdruntime "runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
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

// largeSteps passes $v and $t on with every kind of step that takes values.
const largeSteps = `{"name":"large","inputs":{"v":{},"t":{}},"steps":[
	{"type":"set","values":{"a":"$v","b":{"in":["$t"]},"n":{"expr":"$v.length"}}},
	{"type":"condition","check":"$a.length === $n","then":[{"type":"set","values":{"v":"$a","t":"$b.in[0]"}}]},
	{"command":"test/act","params":{"text":"$t","list":"$v"},"outputTo":"act"},
	{"type":"loop","each":["$t"],"as":"it","steps":[{"type":"set","values":{"item":"$it"}}],"outputTo":"loop"},
	{"type":"parallel","branches":[[{"type":"set","values":{"p":"$v"},"outputTo":"q"}],[{"type":"set","values":{"r":"$t"}}]],"outputTo":"par"}
	],"loop":{"type":"once"},"safety":{"onInterrupt":"retry"}}`

// largeList is a list of objects of about n bytes, largeText a text of that size. Both have what readers of
// JSON change: long numbers, the order of keys, escapes.
func largeList(n int) json.RawMessage {
	var b strings.Builder
	b.WriteString(`[{"z":12345678901234567890.10,"__proto__":{"a":-0},"a":"@s64 <&>\u2028"}`)
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, `,{"id":%d,"name":"item %d","path":"src/package/file_%d.go","done":%t,"tags":["a","b"],"note":"first line\nsecond \"line\""}`, i, i, i, i%2 == 0)
	}
	return json.RawMessage(b.String() + "]")
}

func largeText(n int) json.RawMessage {
	text, err := json.Marshal(strings.Repeat("func main() {\n\tfmt.Println(\"@s64 \\ é\")\n}\n", n/45))
	if err != nil {
		panic(err) // a string always encodes
	}
	return text
}

// TestLargeValueStaysTheSame: values that the guests never see are those of before in variables, in calls and
// after a crash at any point, and no record has them in itself.
func TestLargeValueStaysTheSame(t *testing.T) {
	v, text := largeList(200_000), largeText(200_000)
	opt := func() (runtime.Options, *scriptedHost) {
		s := &scriptedHost{Recalled: true, Commands: map[string][]response{"test/act": {{Result: []byte(`{"done":true}`)}}}}
		return runtime.Options{Commands: s, OnInterrupt: sentinels.InterruptRetry, Limits: runtime.Limits{Crashes: 1000}}, s
	}
	check := func(when string, res runtime.Result) {
		t.Helper()
		want := map[string]json.RawMessage{"a": v, "v": v, "p": v, "t": text, "item": text, "r": text, "b": json.RawMessage(`{"in":[` + string(text) + `]}`), "q": json.RawMessage(`{"p":` + string(v) + `}`)}
		if res.Status != sentinels.StatusCompleted {
			t.Fatalf("%s: %s %v", when, res.Status, res.Error)
		}
		for name, value := range want {
			if got := decoded(t, res.Variables[name]); got != decoded(t, value) {
				t.Errorf("%s: variable %s has %d bytes, want the %d of before", when, name, len(got), len(value))
			}
		}
	}
	f := newRecordingStore()
	first, _ := opt()
	rt := openBuiltin(t, f, first)
	id := start(t, rt, largeSteps, runtime.StartOptions{Workspace: "/w", Inputs: map[string]json.RawMessage{"v": v, "t": text}})
	check("without a crash", wait(t, rt, id))
	rt.Close()
	large := 0
	f.has(t, func(r *journal.Record) bool {
		if r.CallEnd != nil {
			large += len(r.CallEnd.SetLarge)
		}
		if r.CallStart != nil {
			large += len(r.CallStart.BranchLarge)
		}
		if b, err := journal.Encode(r); err == nil && len(b) > 64<<10 && r.Kind != journal.RunStart {
			t.Errorf("a record of kind %s has %d bytes", r.Kind, len(b))
		}
		return false
	})
	if large < 8 {
		t.Errorf("%d variables of records are blobs, want 8", large)
	}
	for n := f.after(t, 1, kind(journal.RunStart)); n < f.length(); n += 5 {
		again, _ := opt()
		rt := openBuiltin(t, f.prefix(t, n), again)
		if !status(t, rt, id).Status.Final() {
			if err := rt.Resume(within(t), id, runtime.ResumeOptions{}); err != nil {
				t.Fatalf("crash behind batch %d: %v", n, err)
			}
		}
		check(fmt.Sprintf("crash behind batch %d", n), wait(t, rt, id))
		rt.Close()
	}
}

// decoded returns JSON with the numbers and the order of keys as they are written, and texts without escapes
// that mean the same.
func decoded(t *testing.T, text json.RawMessage) string {
	t.Helper()
	var b strings.Builder
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	for d.More() || b.Len() == 0 {
		token, err := d.Token()
		if err != nil {
			break
		}
		fmt.Fprintf(&b, "%T %v\n", token, token)
	}
	return b.String()
}

// TestLargeValueIsCopiedFewTimes counts the bytes that a run allocates for a value of a megabyte that ten steps
// pass on. Each pass that builds something of the value allocates at least its size.
func TestLargeValueIsCopiedFewTimes(t *testing.T) {
	if raceEnabled {
		t.Skip("under the race detector pools lose memory at random, so more is allocated")
	}
	s := &scriptedHost{Recalled: true, Commands: map[string][]response{"test/act": {{Result: []byte(`{"done":true}`)}}}}
	db := store.NewMemory()
	rt := openBuiltin(t, db, runtime.Options{Commands: s})
	for value, v := range map[string]json.RawMessage{"list": largeList(1 << 20), "text": largeText(1 << 20)} {
		for step, most := range map[string]float64{
			`{"type":"set","values":{"v":"$v"}}`:                             7, // fields, block, request, output, and their blobs
			`{"command":"test/act","params":{"text":"$v"},"outputTo":"act"}`: 8.3,
		} {
			def := `{"name":"ten","inputs":{"v":{}},"steps":[` + strings.Repeat(step+",", 9) + step + `],"loop":{"type":"once"}}`
			run := func() uint64 {
				var before, after stdruntime.MemStats
				stdruntime.ReadMemStats(&before)
				id := start(t, rt, def, runtime.StartOptions{Workspace: "/w", Inputs: map[string]json.RawMessage{"v": v}})
				if res := wait(t, rt, id); res.Status != sentinels.StatusCompleted {
					t.Fatalf("%s: %v", res.Status, res.Error)
				}
				stdruntime.ReadMemStats(&after)
				return after.TotalAlloc - before.TotalAlloc
			}
			run() // makes the instance
			copies := float64(run()) / 10 / float64(len(v))
			t.Logf("%s, %s: %.1f copies a step", value, step, copies)
			if copies > most {
				t.Errorf("%s, %s: the run allocates %.1f times the size of the value for each step, want at most %g", value, step, copies, most)
			}
		}
	}
}
