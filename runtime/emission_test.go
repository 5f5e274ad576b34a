package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// emitting is a fake host with commands that emit an event: through the runtime, in a
// transaction, and in one that fails.
type emitting struct {
	*fakeHost
	rt    *runtime.Runtime
	waits atomic.Int64 // calls of sentinel_wait
}

func (w *emitting) Lookup(name string) (runtime.CommandInfo, bool) {
	switch name {
	case "emit/log":
		return runtime.CommandInfo{Name: name, Idempotent: true}, true
	case "emit/store", "emit/fail", "emit/large":
		return runtime.CommandInfo{Name: name, InStore: true}, true
	}
	return w.fakeHost.Lookup(name)
}

func (w *emitting) Call(ctx context.Context, c runtime.CommandCall) (json.RawMessage, error) {
	var params struct {
		Value json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal(c.Params, &params); err != nil {
		return nil, err
	}
	e := sentinels.Event{ID: c.Key, Name: "e", Source: "test", Data: params.Value}
	switch c.Command {
	case "emit/log":
		_, err := w.rt.Emit(ctx, e)
		return json.RawMessage("{}"), err
	case "emit/store":
		return json.RawMessage("{}"), c.Documents.Emit(ctx, e)
	case "emit/fail":
		return nil, errors.Join(c.Documents.Emit(ctx, e), errors.New("failed after it emitted"))
	case "emit/large": // more than a guest can be answered
		return json.RawMessage(`"` + strings.Repeat("x", 18_000_000) + `"`), c.Documents.Emit(ctx, e)
	}
	return w.fakeHost.Call(ctx, c)
}

// openEmitting opens a runtime whose iterations may emit so many bytes.
func openEmitting(t *testing.T, db store.Store, limit int64) (*runtime.Runtime, *emitting) {
	t.Helper()
	w := &emitting{fakeHost: newFakeHost()}
	opt := runtime.Options{Commands: w, Executions: w, Limits: runtime.Limits{EventBytes: limit}}
	opt.Observer.Progress = func(p runtime.Progress) {
		if p.Event == runtime.OnCallStart && p.Function == abi.FuncWait {
			w.waits.Add(1)
		}
	}
	rt, err := runtime.OpenOn(t.Context(), db, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	w.rt = rt
	if err := runtime.AddModule(rt, steps()); err != nil {
		t.Fatal(err)
	}
	return rt, w
}

// emits is a step that emits an event whose name and data have size bytes.
// kind is "say" for the host call, else the name of a command.
func emits(kind string, size int, out string) string {
	data := strings.Repeat("x", size-len("e")-len(`""`))
	if kind == "say" {
		return fmt.Sprintf(`{"type":"say","event":"e","data":%q,"onError":"skip","outputTo":%q}`, data, out)
	}
	return fmt.Sprintf(`{"type":"call","command":%q,"value":%q,"onError":"skip","outputTo":%q}`, kind, data, out)
}

func emitsAll(loop string, steps ...string) string {
	return `{"name":"emits","steps":[` + strings.Join(steps, ",") + `],"loop":` + loop + `}`
}

// outcomes returns for each variable "ok" or the message of its error.
func outcomes(t *testing.T, res runtime.Result, names ...string) (out []string) {
	t.Helper()
	if res.Status != sentinels.StatusCompleted {
		t.Fatalf("run ended %s: %v", res.Status, res.Error)
	}
	for _, name := range names {
		var v struct{ Error *abi.Error }
		if err := json.Unmarshal(res.Variables[name], &v); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		switch {
		case v.Error == nil:
			out = append(out, "ok")
		case v.Error.Code == abi.Limit && v.Error.Hint != "":
			out = append(out, v.Error.Message)
		default:
			out = append(out, fmt.Sprintf("%+v", v.Error))
		}
	}
	return out
}

const once = `{"type":"once"}`

// An iteration emits so many bytes of events, however it emits them. What does
// not fit is refused and not emitted; what fits after that still is.
func TestEventBytesOfAnIteration(t *testing.T) {
	for _, kind := range []string{"say", "emit/log", "emit/store"} {
		t.Run(kind, func(t *testing.T) {
			rt, _ := openEmitting(t, store.NewMemory(), 100)
			res := runToEnd(t, rt, emitsAll(once, emits(kind, 49, "a"), emits(kind, 52, "b"), emits(kind, 51, "c"), emits(kind, 4, "d")), runtime.StartOptions{})
			want := []string{
				"ok", `eventBytes: event "e" of 52 bytes is too much for iteration 1: it has emitted 49 bytes of events, the limit is 100`,
				"ok", `eventBytes: event "e" of 4 bytes is too much for iteration 1: it has emitted 100 bytes of events, the limit is 100`,
			}
			if diff := cmp.Diff(want, outcomes(t, res, "a", "b", "c", "d")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if events, err := rt.Events("e", 10); len(events) != 2 || err != nil {
				t.Errorf("%d events, %v; want 2", len(events), err)
			}
		})
	}
}

// The next iteration begins to count at 0, and events of a transaction that
// failed do not count; neither do those of one whose answer is too large.
func TestEventBytesBeginAnew(t *testing.T) {
	rt, _ := openEmitting(t, store.NewMemory(), 100)
	res := runToEnd(t, rt, emitsAll(`{"type":"count","max":3}`, emits("emit/fail", 100, "failed"), emits("emit/large", 100, "large"), emits("say", 100, "a")), runtime.StartOptions{})
	if diff := cmp.Diff([]string{"the result of the command has 18000002 bytes, the limit is 17825792", "ok"}, outcomes(t, res, "large", "a")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if events, err := rt.Events("e", 10); len(events) != 3 || err != nil {
		t.Errorf("%d events, %v; want one of each iteration", len(events), err)
	}
}

// A run that is resumed has emitted what it had emitted before.
func TestEventBytesAfterResume(t *testing.T) {
	for _, kind := range []string{"say", "emit/log", "emit/store"} {
		t.Run(kind, func(t *testing.T) {
			db := store.NewMemory()
			rt, w := openEmitting(t, db, 100)
			src := emitsAll(`{"type":"count","max":2}`,
				emits(kind, 60, "a"), `{"type":"pause","event":"more"}`, emits(kind, 41, "b"), emits(kind, 40, "c"))
			id := start(t, rt, src, runtime.StartOptions{})
			emit(t, rt, "more", "1")
			until(t, "the second iteration to wait", func() bool { return w.waits.Load() == 2 })
			commit(t, rt)
			snap := db.Snapshot()
			rt.Close()

			rt, _ = openEmitting(t, snap, 100)
			if err := rt.Resume(within(t), id, runtime.ResumeOptions{}); err != nil {
				t.Fatal(err)
			}
			emit(t, rt, "more", "2")
			want := []string{"ok", `eventBytes: event "e" of 41 bytes is too much for iteration 2: it has emitted 60 bytes of events, the limit is 100`, "ok"}
			if diff := cmp.Diff(want, outcomes(t, wait(t, rt, id), "a", "b", "c")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// By default an iteration emits 16 MiB: 64 events of 255 KiB, and not the 10,000
// that the number of its calls allows.
func TestEventBytesDefault(t *testing.T) {
	rt, _ := openEmitting(t, store.NewMemory(), 0)
	src := emitsAll(once, `{"type":"times","count":70,"steps":[`+emits("say", 255<<10, "a")+`]}`)
	if res := runToEnd(t, rt, src, runtime.StartOptions{}); res.Status != sentinels.StatusCompleted {
		t.Fatalf("run ended %s: %v", res.Status, res.Error)
	}
	if events, err := rt.Events("e", 100); len(events) != 64 || err != nil {
		t.Errorf("%d events, %v; want 64", len(events), err)
	}
}
