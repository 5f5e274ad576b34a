package runtime_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// open starts a runtime with the test's step types on a store in memory.
func open(t testing.TB, w *fakeHost, db store.Store, opt runtime.Options) *runtime.Runtime {
	t.Helper()
	opt.Commands, opt.Models, opt.Executions = w, w, w
	rt, err := runtime.OpenOn(context.Background(), db, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	if err := runtime.AddModule(rt, steps()); err != nil {
		t.Fatal(err)
	}
	return rt
}

func decode(t testing.TB, rt *runtime.Runtime, src string) *sentinels.Definition {
	t.Helper()
	def, problems := rt.Decode([]byte(src), "test.json")
	if len(problems) > 0 {
		t.Fatalf("decode: %v", problems)
	}
	return def
}

// runToEnd runs a definition to its end.
func runToEnd(t testing.TB, rt *runtime.Runtime, src string, opt runtime.StartOptions) runtime.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	id, err := rt.Start(ctx, decode(t, rt, src), opt)
	if err != nil {
		t.Fatal(err)
	}
	res, err := rt.Wait(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func variable(t testing.TB, res runtime.Result, name string) string {
	t.Helper()
	v, ok := res.Variables[name]
	if !ok {
		t.Fatalf("run %s ended %s (%v) without the variable %q; it has %v", res.Run, res.Status, res.Error, name, res.Variables)
	}
	return string(v)
}

func TestThreeStepsMakeFourCommits(t *testing.T) {
	w := newFakeHost()
	db := store.NewMemory()
	rt := open(t, w, db, runtime.Options{})
	before := runtime.Commits(rt)
	res := runToEnd(t, rt, `{"name":"three","steps":[
		{"type":"call","command":"world/act","value":1,"outputTo":"a"},
		{"type":"call","command":"world/act","value":"$a.value","outputTo":"b"},
		{"type":"call","command":"world/act","value":"$b.value","outputTo":"c"}],"loop":{"type":"once"}}`, runtime.StartOptions{})
	if res.Status != sentinels.StatusCompleted {
		t.Fatalf("status %s: %v", res.Status, res.Error)
	}
	var c struct{ Value int }
	if err := json.Unmarshal([]byte(variable(t, res, "c")), &c); err != nil || c.Value != 1 {
		t.Errorf("c = %s, want value 1 handed through", variable(t, res, "c"))
	}
	// A run of n steps with effects waits for n+1 commits and no more.
	if got := runtime.Commits(rt) - before; got != 4 {
		t.Errorf("%d commits, want 4", got)
	}
	if len(w.made) != 3 {
		t.Errorf("%d effects, want 3", len(w.made))
	}
}
