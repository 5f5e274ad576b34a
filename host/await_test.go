package host_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/host/client"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// waiter waits for the run whose id comes with an event.
const waiter = `{"id":"waiter","inputs":{"n":{"type":"string"}},"steps":[
	{"type":"wait","event":"$inputs.n","outputTo":"go"},
	{"command":"sentinel/await","params":{"run":"$go.event.data.run"},"outputTo":"other"}]}`

// started starts a run of a stored sentinel.
func started(t *testing.T, h *host.Host, id, n string) sentinels.RunID {
	t.Helper()
	var out struct {
		Run sentinels.RunID `json:"run"`
	}
	must(t, h, "sentinel/start", map[string]any{"sentinelId": id, "inputs": map[string]any{"n": n}}, &out)
	return out.Run
}

func tell(t *testing.T, h *host.Host, name string, run sentinels.RunID) {
	t.Helper()
	if _, err := h.Runtime().Emit(t.Context(), sentinels.Event{Name: name, Data: []byte(`{"run":"` + string(run) + `"}`)}); err != nil {
		t.Fatal(err)
	}
}

// awaits waits until a run has begun the command of its step n, counted from 1.
func awaits(t *testing.T, h *host.Host, id sentinels.RunID, n int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		trace, err := h.Runtime().Trace(id)
		if err != nil {
			t.Fatal(err)
		}
		if it := trace.Iterations; len(it) > 0 && len(it[0].Steps) == n && len(it[0].Steps[n-1].Attempts[0].Calls) > 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not wait", id)
		}
	}
}

func ended(t *testing.T, h *host.Host, id sentinels.RunID) runtime.Result {
	t.Helper()
	res, err := h.Runtime().Wait(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func refusedAs(t *testing.T, res runtime.Result, text string) {
	t.Helper()
	if res.Status != sentinels.StatusFailed || res.Error == nil || res.Error.Code != abi.Conflict || !strings.Contains(res.Error.Message, text) {
		t.Errorf("%s with %v, want conflict: %s", res.Status, res.Error, text)
	}
}

// TestSpecAwait quotes the specification: "sentinel/await (and wait with run) joins a
// child; waiting for oneself, an ancestor or in a circle is refused."
func TestSpecAwait(t *testing.T) {
	h := open(t, host.Options{})
	must(t, h, "sentinel/create", map[string]any{"definition": waiter}, nil)
	must(t, h, "sentinel/create", map[string]any{"definition": `{"id":"above","inputs":{"n":{"type":"string"}},"steps":[{"definition":{"$ref":"waiter"},"inputs":{"n":"$inputs.n"}}]}`}, nil)

	a, b := started(t, h, "waiter", "go:a"), started(t, h, "waiter", "go:b")
	tell(t, h, "go:a", b)
	awaits(t, h, a, 2)
	tell(t, h, "go:b", a)
	refusedAs(t, ended(t, h, b), "they would wait for each other: "+string(b)+" waits for "+string(a)+" waits for "+string(b))
	if got := variable(t, ended(t, h, a), "other"); !strings.Contains(got, `"status":"failed"`) {
		t.Errorf("the run that waited has %s", got)
	}

	self := started(t, h, "waiter", "go:self")
	tell(t, h, "go:self", self)
	refusedAs(t, ended(t, h, self), string(self)+" cannot wait for run "+string(self))

	parent := started(t, h, "above", "go:below")
	for { // the child waits for events from its own start on
		tell(t, h, "go:below", parent)
		info, err := h.Runtime().Status(parent)
		if err != nil {
			t.Fatal(err)
		}
		if info.Status.Final() {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	refusedAs(t, ended(t, h, parent), "it is one of the runs that started this one")

	// By a user: with a time limit.
	last := started(t, h, "waiter", "never")
	if err := call(t, h, "sentinel/await", map[string]any{"run": last, "timeoutMs": 20}, nil); abi.CodeOf(err) != abi.Timeout || !strings.Contains(err.Error(), "has not ended after 20 ms") {
		t.Errorf("%v", err)
	}
	if err := call(t, h, "sentinel/await", map[string]any{"sentinelId": "waiter", "timeoutMs": -1}, nil); abi.CodeOf(err) != abi.BadFields {
		t.Errorf("%v", err)
	}
	must(t, h, "sentinel/stop", map[string]any{"run": last}, nil)
	var res runtime.Result
	must(t, h, "sentinel/await", map[string]any{"run": last}, &res)
	if res.Status != sentinels.StatusStopped {
		t.Errorf("%+v", res)
	}
}

// thirdAwait is a registry that calls then when sentinel/await is called for the third time.
type thirdAwait struct {
	registryOf
	calls atomic.Int32
	then  func()
}

// Call counts, and calls the command.
func (r *thirdAwait) Call(ctx context.Context, call *command.Call) (json.RawMessage, error) {
	if call.Command == "sentinel/await" && r.calls.Add(1) == 3 {
		r.then()
	}
	return r.registryOf.Call(ctx, call)
}

// TestAwaitOverHTTPGoesOn: a client waits for the end of a run, however short one request
// of the server waits.
func TestAwaitOverHTTPGoesOn(t *testing.T) {
	h := open(t, host.Options{})
	must(t, h, "sentinel/create", map[string]any{"definition": json.RawMessage(`{"name":"late","steps":[{"type":"wait","event":"go"}]}`)}, nil)
	run := started(t, h, "late", "")
	reg := &thirdAwait{registryOf: registryOf{h}, then: func() { tell(t, h, "go", run) }}
	a, err := api.New(api.Options{Commands: reg, Tokens: anyToken{}, AwaitTime: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	srv := serveAPI(t, a)
	c, err := client.New(client.Options{URL: srv.URL, Token: "x"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var out runtime.Result
	if err := c.Call(t.Context(), "sentinel/await", map[string]any{"run": run}, &out); err != nil || out.Status != sentinels.StatusCompleted || reg.calls.Load() < 3 {
		t.Errorf("%+v, %v after %d requests", out, err, reg.calls.Load())
	}
}
