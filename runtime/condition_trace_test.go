package runtime_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
)

// The trace shows the value of a step's condition, also for a step that was executed
// and in a run that was resumed meanwhile.
func TestTraceShowsConditions(t *testing.T) {
	const src = `{"id":"conditions","name":"conditions","steps":[
		{"type":"call","command":"world/look","value":%q,"outputTo":"x"},
		{"type":"call","command":"world/look","value":1,"condition":"$x.value"},
		{"type":"call","command":"world/look","value":1,"condition":"!$x.value"},
		{"type":"call","command":"world/look","value":1,"condition":"$x.nothing"},
		{"type":"pause","event":"go","condition":"[$x.value]"},
		{"type":"call","command":"world/look","value":1}],
		"loop":{"type":"until","check":"$x.value"},"safety":{"maxIterations":2}}`
	long := strings.Repeat("x", 300)
	for name, tt := range map[string]struct{ value, want string }{
		"the text false":    {"false", `- "false" false undefined ["false"] -; loop "false"`},
		"a text with quote": {`say "no"`, `- "say \"no\"" false undefined ["say \"no\""] -; loop "say \"no\""`},
		"a secret":          {"hunter2 and more", `- "*** and more" false undefined ["*** and more"] -; loop "*** and more"`},
		"a long text": {long, fmt.Sprintf(`- "%s... false undefined ["%s... -; loop "%s...`,
			long[:199], long[:198], long[:199])},
	} {
		t.Run(name, func(t *testing.T) {
			db := store.NewMemory()
			opt := runtime.Options{Redact: func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("hunter2"), []byte("***")) }}
			rt := open(t, newFakeHost(), db, opt)
			stored, err := rt.Save(within(t), decode(t, rt, fmt.Sprintf(src, tt.value)), 0) // what is recorded of it has no secret
			if err != nil {
				t.Fatal(err)
			}
			id := startStored(t, rt, stored, runtime.StartOptions{})
			until(t, "the run to wait for the event", func() bool { return runtime.Subscribers(rt) == 1 })
			commit(t, rt)
			snap := db.Snapshot()
			rt.Close()
			rt = reopen(t, newFakeHost(), snap, id, opt, runtime.ResumeOptions{})
			emit(t, rt, "go", "")
			wait(t, rt, id)
			trace, err := rt.Trace(id)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range trace.Iterations[0].Steps {
				text := s.Condition
				if text == "" {
					text = "-"
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, " ")+"; loop "+trace.Iterations[0].Check); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The condition of a while loop stands at the iteration that it let begin.
func TestTraceShowsWhile(t *testing.T) {
	rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{})
	res := runToEnd(t, rt, `{"name":"w","steps":[{"type":"call","command":"world/look"}],"loop":{"type":"while","check":"$iteration < 2 && 'go'"},"safety":{"maxIterations":9}}`, runtime.StartOptions{})
	trace, err := rt.Trace(res.Run)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, it := range trace.Iterations {
		got = append(got, it.Check)
	}
	if diff := cmp.Diff([]string{`"go"`, `"go"`}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
