package runtime_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A6.1: a request that two readers could understand differently is refused with
// its place, and nothing is called.
func TestRequestsAreStrict(t *testing.T) {
	for name, c := range map[string]struct{ function, request, want string }{
		"duplicate key":      {abi.FuncCommand, `{"command":"world/look","command":"world/act"}`, `line 1, column 25: command: duplicate key "command"`},
		"duplicate argument": {abi.FuncCommand, `{"command":"world/act","params":{"a":1,"\u0061":2}}`, `params.a: duplicate key "a"`},
		"key in other case":  {abi.FuncCommand, `{"Command":"world/act","command":"world/act"}`, `Command: unknown key "Command"`},
		"duplicate data":     {abi.FuncEmit, `{"event":"a:b","data":{"x":1,"x":2}}`, `data.x: duplicate key "x"`},
		"lone surrogate":     {abi.FuncEmit, `{"event":"a:b","data":"\ud800"}`, `data: text that is not UTF-8`},
		"invalid UTF-8":      {abi.FuncEmit, "{\"event\":\"a:b\",\"data\":\"\xff\"}", `data: text that is not UTF-8`},
		"number":             {abi.FuncEmit, `{"event":"a:b","data":[1e999]}`, `data[0]: the number 1e999 is out of range`},
		"depth":              {abi.FuncEmit, `{"event":"a:b","data":` + strings.Repeat("[", 256) + strings.Repeat("]", 256) + `}`, "nested more than 256 deep"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFakeHost()
			rt := open(t, w, store.NewMemory(), runtime.Options{})
			var got runtime.Answer
			err := runtime.AddModule(rt, &runtime.GoModule{
				Name: "raw", Types: []wasm.StepType{{Type: "raw", Fields: json.RawMessage(`{"type":"object"}`)}},
				Step: func(g *runtime.GoGuest) (any, error) {
					got = g.Call(c.function, json.RawMessage(c.request))
					return nil, nil
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			id, err := rt.Start(t.Context(), decode(t, rt, `{"name":"r","steps":[{"type":"raw"}]}`), runtime.StartOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if res, err := rt.Wait(t.Context(), id); err != nil || res.Status != sentinels.StatusCompleted {
				t.Fatalf("run ended %s: %v, %v", res.Status, res.Error, err)
			}
			if got.Error == nil || got.Error.Code != abi.BadFields || !strings.Contains(got.Error.Message, c.want) {
				t.Errorf("answered %s, %v, want bad_fields with %q", got.OK, got.Error, c.want)
			}
			if len(w.order) > 0 {
				t.Errorf("commands were called: %v", w.order)
			}
			if events, err := rt.Events("a:*", 10); err != nil || len(events) > 0 {
				t.Errorf("events %v, %v", events, err)
			}
		})
	}
}

// An event of the program that embeds the runtime is held to the same.
func TestEmitIsStrict(t *testing.T) {
	rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{})
	_, err := rt.Emit(t.Context(), sentinels.Event{Name: "a:b", Source: "/t", Data: json.RawMessage(`{"x": 1, "x": 2}`)})
	if abi.CodeOf(err) != abi.BadFields || !strings.Contains(err.Error(), `data: line 1, column 10: x: duplicate key "x"`) {
		t.Error(err)
	}
}
