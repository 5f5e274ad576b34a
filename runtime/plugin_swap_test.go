package runtime_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// guest is one of the guest host's own test modules.
func guest(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("internal", "wasm", "testdata", "wat", name+".wasm"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// echo is a plugin of one step type that answers its input; versions differ in
// one digit.
func echo(t testing.TB, version int) plugin.Source {
	t.Helper()
	code := bytes.Replace(guest(t, "echo"), []byte(`"version":"1"`), fmt.Appendf(nil, `"version":"%d"`, version), 1)
	return plugin.Source{Name: "echo.wasm", Wasm: func() ([]byte, error) { return code, nil }}
}

func loadPlugin(t testing.TB, rt *runtime.Runtime, p plugin.Source) plugin.Info {
	t.Helper()
	info, err := rt.LoadPlugin(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// pluginOf returns what the runtime says of a source.
func pluginOf(rt *runtime.Runtime, source string) (plugin.Info, bool) {
	for _, p := range rt.Plugins() {
		if p.Source == source {
			return p, true
		}
	}
	return plugin.Info{}, false
}

// TestSwapUnderALoop swaps a plugin all the time under a loop: no pass uses two
// versions, later passes use later ones, and old ones do not pile up.
func TestSwapUnderALoop(t *testing.T) {
	w := newFakeHost()
	w.delay = time.Millisecond
	rt := open(t, w, store.NewMemory(), runtime.Options{})
	loadPlugin(t, rt, echo(t, 1))
	def := decode(t, rt, `{"name":"l","loop":{"type":"count","max":100000},"steps":[
		{"type":"echo","outputTo":"a"},{"type":"call","command":"world/look","value":1},{"type":"echo","outputTo":"b"},
		{"type":"seq","steps":[{"type":"call","command":"world/act","value":1},{"type":"echo","outputTo":"c"}]}]}`)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	id, err := rt.Start(ctx, def, runtime.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 12 {
		if _, err := rt.LoadPlugin(ctx, echo(t, 1+(n+1)%9)); err != nil {
			t.Errorf("swap %d: %v", n, err)
		}
	}
	if err := rt.Stop(ctx, id); err != nil {
		t.Fatal(err)
	}
	res, err := rt.Wait(ctx, id)
	if err != nil || res.Status != sentinels.StatusStopped {
		t.Fatalf("run ended %s: %v, %v", res.Status, res.Error, err)
	}
	trace, err := rt.Trace(id)
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for i := range trace.Iterations {
		it := &trace.Iterations[i]
		digests := map[string]bool{}
		echoes := 0
		it.Walk(func(s *runtime.TraceStep) {
			if s.Type == "echo" {
				echoes++
				digests[s.Attempts[0].Module] = true
				used[s.Attempts[0].Module] = true
			}
		})
		last := i == len(trace.Iterations)-1 // stopped in between
		if echoes != 3 && !last || len(digests) > 1 {
			t.Errorf("iteration %d executed %d echo steps with %d versions, want 3 with one", it.Number, echoes, len(digests))
		}
	}
	if len(used) < 2 {
		t.Errorf("%d versions used: nothing was swapped under the loop", len(used))
	}
	if all, held := runtime.Modules(rt); held != 2 || all > 2+4 { // echo and the test's own, and the few that are kept
		t.Errorf("%d modules are in memory and %d are held, want at most 6 and 2", all, held)
	}
}

// TestLoadPluginRefused: what is wrong is said by name, and what was live stays.
func TestLoadPluginRefused(t *testing.T) {
	rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{})
	v1 := loadPlugin(t, rt, echo(t, 1))
	named := func(name, sin string) plugin.Source {
		return plugin.Source{Name: name, Wasm: func() ([]byte, error) { return guest(t, sin), nil }}
	}
	for _, c := range []struct {
		plugin plugin.Source
		code   abi.Code
		words  string
	}{
		{plugin.Source{Name: "echo.wasm", Wasm: func() ([]byte, error) { return []byte("no module"), nil }}, abi.BadFields, `"echo.wasm"`},
		{plugin.Source{Name: "echo.wasm", Wasm: func() ([]byte, error) { return nil, errors.New("disk on fire") }}, abi.BadFields, "disk on fire"},
		{named("echo.wasm", "norun"), abi.BadFields, `"run"`},
		{named("echo.wasm", "asked"), abi.Denied, "asks for permissions"},
		{named("other.wasm", "echo"), abi.Conflict, "live from another file"},
		{plugin.Source{Name: "other.wasm", Wasm: echo(t, 2).Wasm}, abi.Conflict, `step type "echo" is already provided by plugin "echo"`},
	} {
		_, err := rt.LoadPlugin(t.Context(), c.plugin)
		if abi.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.words) || !strings.Contains(err.Error(), c.plugin.Name) {
			t.Errorf("load %s: %v of code %q, want %q and %q", c.plugin.Name, err, abi.CodeOf(err), c.code, c.words)
		}
	}
	info, _ := pluginOf(rt, "echo.wasm")
	if info.Digest != v1.Digest || info.Problem != "" || !strings.Contains(info.Refused, "permissions") {
		t.Errorf("echo.wasm is %+v, want the first version live and why the newest is not", info)
	}
	if other, ok := pluginOf(rt, "other.wasm"); !ok || other.Problem == "" || other.Types != nil {
		t.Errorf("other.wasm is %+v, want it listed with its problem", other)
	}
	if res := runToEnd(t, rt, `{"name":"e","steps":[{"type":"echo","outputTo":"e"}]}`, runtime.StartOptions{}); res.Status != sentinels.StatusCompleted {
		t.Errorf("a run with the old version ended %s: %v", res.Status, res.Error)
	}
	if again := loadPlugin(t, rt, echo(t, 1)); again.Digest != v1.Digest {
		t.Errorf("loading the same again gave %+v", again)
	}
	if info, _ = pluginOf(rt, "echo.wasm"); info.Refused != "" {
		t.Errorf("the reason %q stayed when the file was mended", info.Refused)
	}
	// A renamed file takes the place of the old one.
	moved := echo(t, 1)
	moved.Name, moved.Replaces = "moved.wasm", "echo.wasm"
	loadPlugin(t, rt, moved)
	if _, ok := pluginOf(rt, "echo.wasm"); ok {
		t.Error("echo.wasm is still listed after moved.wasm took its place")
	}
	if err := rt.UnloadPlugin(t.Context(), "echo.wasm"); abi.CodeOf(err) != abi.NotFound {
		t.Errorf("unload of what is not there: %v", err)
	}
	if err := rt.UnloadPlugin(t.Context(), "moved.wasm"); err != nil {
		t.Fatal(err)
	}
	if _, problems := rt.Decode([]byte(`{"name":"e","steps":[{"type":"echo"}]}`), ""); len(problems) == 0 {
		t.Error("a definition with an unloaded step type was taken")
	}
	if err := rt.UnloadPlugin(t.Context(), "other.wasm"); err != nil { // it is listed, so it can go
		t.Fatal(err)
	}
	rt.Close()
	if _, err := rt.LoadPlugin(t.Context(), echo(t, 1)); err == nil {
		t.Error("a closed runtime loaded a plugin")
	}
}

func TestTrustedPluginsStay(t *testing.T) {
	own := echo(t, 1)
	own.Trusted = true
	rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{Plugins: []plugin.Source{own}})
	if _, err := rt.LoadPlugin(t.Context(), echo(t, 2)); abi.CodeOf(err) != abi.Denied {
		t.Errorf("a file took the place of a part of the program: %v", err)
	}
	if err := rt.UnloadPlugin(t.Context(), "echo.wasm"); abi.CodeOf(err) != abi.Denied {
		t.Errorf("a part of the program was unloaded: %v", err)
	}
}

// waiter is a plugin whose step waits for an event and then says which version
// it is. Version 2 has a field that holds steps, which version 1 has not.
func waiter(version string) *runtime.GoModule {
	fields := `{"type":"object","properties":{"inner":{}}}`
	if version != "one" {
		fields = `{"type":"object","properties":{"inner":{"x-sentinel":"steps"}}}`
	}
	return &runtime.GoModule{Name: version, Types: []wasm.StepType{{Type: "gate", Fields: json.RawMessage(fields)}},
		Step: func(g *runtime.GoGuest) (any, error) {
			if a := g.Call(abi.FuncWait, map[string]any{"event": "go"}); a.Error != nil {
				return nil, a.Error
			}
			return version + string(g.Input.Step.Fields["inner"]), nil
		}}
}

const twoGates = `{"name":"g","loop":{"type":"count","max":2},"steps":[
	{"type":"gate","inner":[{"type":"call","command":"world/look"}],"outputTo":"a"},{"type":"gate","outputTo":"b"},
	{"type":"call","command":"world/note","value":"$a/$b"}]}`

// letThrough emits events until the run has ended.
func letThrough(t *testing.T, rt *runtime.Runtime, id sentinels.RunID) runtime.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	done := make(chan runtime.Result, 1)
	go func() {
		res, err := rt.Wait(ctx, id)
		if err != nil {
			t.Error(err)
		}
		done <- res
	}()
	for {
		select {
		case res := <-done:
			return res
		case <-time.After(5 * time.Millisecond):
		}
		if _, err := rt.Emit(ctx, sentinels.Event{Name: "go", Source: "/test"}); err != nil {
			t.Fatal(err)
		}
	}
}

// waits blocks until a step of the run has begun to wait.
func waits(t *testing.T, rt *runtime.Runtime) {
	t.Helper()
	for end := time.Now().Add(time.Minute); rt.Probe().Waiting() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the run does not wait")
		}
	}
}

// TestParkedStepsEndOnTheirVersion: a step that waits when its plugin is swapped
// ends with the version it began with, and so does the rest of its pass.
func TestParkedStepsEndOnTheirVersion(t *testing.T) {
	for _, resident := range []int{0, -1} { // kept in memory while it waits, and replayed
		rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{Limits: runtime.Limits{Resident: resident}})
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		must(runtime.SwapModule(rt, "gate.wasm", waiter("one")))
		id, err := rt.Start(t.Context(), decode(t, rt, twoGates), runtime.StartOptions{})
		must(err)
		waits(t, rt)
		must(runtime.SwapModule(rt, "gate.wasm", waiter("two")))
		res := letThrough(t, rt, id)
		if res.Status != sentinels.StatusCompleted {
			t.Fatalf("run ended %s: %v", res.Status, res.Error)
		}
		// The second pass reads the definition with the fields of version two, in
		// which "inner" holds steps.
		if a, b := variable(t, res, "a"), variable(t, res, "b"); a != `"two{\"count\":1}"` || b != `"two"` {
			t.Errorf("the last pass gave %s and %s, want the second version's", a, b)
		}
		trace, err := rt.Trace(id)
		must(err)
		for i, want := range []string{"go-one", "go-two"} {
			for _, s := range trace.Iterations[i].Steps[:2] {
				if got := s.Attempts[0].Module; got != want {
					t.Errorf("pass %d step %s ran with %s, want %s", i+1, s.Address, got, want)
				}
			}
		}
	}
}

// TestUnloadUnderAParkedStep: it ends; the run is paused before its next iteration, with the reason,
// and continues when the plugin returns. So does one that a crash interrupted.
func TestUnloadUnderAParkedStep(t *testing.T) {
	db := store.NewMemory()
	rt := open(t, newFakeHost(), db, runtime.Options{})
	if err := runtime.SwapModule(rt, "gate.wasm", waiter("one")); err != nil {
		t.Fatal(err)
	}
	def := decode(t, rt, twoGates)
	id, err := rt.Start(t.Context(), def, runtime.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	waits(t, rt)
	if err := rt.UnloadPlugin(t.Context(), "gate.wasm"); err != nil {
		t.Fatal(err)
	}
	if _, err := rt.Emit(t.Context(), sentinels.Event{Name: "other", Source: "/test"}); err != nil { // durable, and with it all before
		t.Fatal(err)
	}
	crashed := db.Snapshot()
	returns := func(rt *runtime.Runtime) {
		t.Helper()
		pausedWithoutPlugin(t, rt, id)
		if err := rt.Resume(t.Context(), id, runtime.ResumeOptions{}); err != nil { // it does not help
			t.Fatal(err)
		}
		pausedWithoutPlugin(t, rt, id)
		if err := runtime.SwapModule(rt, "gate.wasm", waiter("two")); err != nil {
			t.Fatal(err)
		}
		if res := letThrough(t, rt, id); res.Status != sentinels.StatusCompleted || res.Iterations != 2 {
			t.Errorf("run ended %s in iteration %d: %v; want it completed", res.Status, res.Iterations, res.Error)
		}
	}
	returns(rt)

	// The same after a crash: the iteration that was interrupted ends with the module
	// that its waiting step began with, though the plugin is gone.
	next := open(t, newFakeHost(), crashed, runtime.Options{})
	if err := runtime.SwapModule(next, "gate.wasm", waiter("one")); err != nil {
		t.Fatal(err)
	}
	if err := next.UnloadPlugin(t.Context(), "gate.wasm"); err != nil { // in memory now, as from the store
		t.Fatal(err)
	}
	if err := next.Resume(t.Context(), id, runtime.ResumeOptions{}); err != nil {
		t.Fatal(err)
	}
	returns(next)
}

// TestPauseWithoutPlugin: the pause of a person stays when the plugin comes back that the paused run had lost.
func TestPauseWithoutPlugin(t *testing.T) {
	rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{})
	if err := runtime.SwapModule(rt, "gate.wasm", waiter("one")); err != nil {
		t.Fatal(err)
	}
	id, err := rt.Start(t.Context(), decode(t, rt, twoGates), runtime.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	waits(t, rt)
	if err := rt.UnloadPlugin(t.Context(), "gate.wasm"); err != nil {
		t.Fatal(err)
	}
	pausedWithoutPlugin(t, rt, id)
	if err := rt.PauseWith(t.Context(), id, runtime.PauseOptions{By: "ann", Over: true}); err != nil {
		t.Fatal(err)
	}
	if err := runtime.SwapModule(rt, "gate.wasm", waiter("two")); err != nil {
		t.Fatal(err)
	}
	if info := status(t, rt, id); info.Status != sentinels.StatusPaused || info.PausedBy() != "ann" {
		t.Fatalf("%s, %q", info.Status, info.Reason)
	}
	if err := rt.Resume(t.Context(), id, runtime.ResumeOptions{}); err != nil {
		t.Fatal(err)
	}
	if res := letThrough(t, rt, id); res.Status != sentinels.StatusCompleted || res.Iterations != 2 {
		t.Errorf("%s in iteration %d: %v", res.Status, res.Iterations, res.Error)
	}
}

// TestRestartWithoutPlugin: a process that starts while the plugin of a paused loop is gone takes the loop up
// when the plugin returns.
func TestRestartWithoutPlugin(t *testing.T) {
	db := store.NewMemory()
	rt := open(t, newFakeHost(), db, runtime.Options{})
	if err := runtime.SwapModule(rt, "gate.wasm", waiter("one")); err != nil {
		t.Fatal(err)
	}
	id, err := rt.Start(t.Context(), decode(t, rt, twoGates), runtime.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	waits(t, rt)
	if err := rt.UnloadPlugin(t.Context(), "gate.wasm"); err != nil {
		t.Fatal(err)
	}
	pausedWithoutPlugin(t, rt, id)
	if _, err := rt.Emit(t.Context(), sentinels.Event{Name: "other", Source: "/test"}); err != nil { // durable, and with it all before
		t.Fatal(err)
	}

	next := open(t, newFakeHost(), db.Snapshot(), runtime.Options{})
	if rec := resumeAll(t, next); len(rec.Failed) != 1 || rec.Failed[0].Run != id || !strings.Contains(rec.Failed[0].Error.Message, `unknown step type "gate"`) {
		t.Fatalf("recovery %+v, want the run %s without its plugin", rec, id)
	}
	pausedWithoutPlugin(t, next, id)
	if err := runtime.SwapModule(next, "gate.wasm", waiter("two")); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if info, err := next.Status(id); err != nil || time.Now().After(end) {
			t.Fatalf("the run is %s, %q, %v; want it to continue", info.Status, info.Reason, err)
		} else if info.Status != sentinels.StatusPaused {
			break
		}
	}
	if res := letThrough(t, next, id); res.Status != sentinels.StatusCompleted || res.Iterations != 2 {
		t.Errorf("run ended %s in iteration %d: %v; want it completed", res.Status, res.Iterations, res.Error)
	}
}

// pausedWithoutPlugin emits events until a run is paused because its plugin is gone.
func pausedWithoutPlugin(t *testing.T, rt *runtime.Runtime, id sentinels.RunID) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		info, err := rt.Status(id)
		if err != nil || time.Now().After(end) || info.Status.Final() {
			t.Fatalf("the run is %s, %q, %v; want it paused", info.Status, info.Reason, err)
		}
		if info.Status == sentinels.StatusPaused {
			if !strings.HasPrefix(info.Reason, "waits for a plugin: ") || !strings.Contains(info.Reason, `"gate"`) {
				t.Errorf("the reason is %q", info.Reason)
			}
			return
		}
		if _, err := rt.Emit(t.Context(), sentinels.Event{Name: "go", Source: "/test"}); err != nil {
			t.Fatal(err)
		}
	}
}
