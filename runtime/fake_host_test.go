package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A fakeHost has the commands and models of an engine test. It counts their effects, so
// that a test can say whether something happened twice.
type fakeHost struct {
	mu     sync.Mutex
	frozen bool           // the process has been killed
	made   map[string]int // key of a call -> how often it was executed
	order  []string
	turns  int
	delay  time.Duration
	fail   func(name string, attempt int) error
	cut    []runtime.InterruptedExecution // background processes that died with the last host

	memory  int64  // that the processes of each run take
	largest string // path of the step of the largest process
	ended   int    // runs whose processes were ended
}

func newFakeHost() *fakeHost { return &fakeHost{made: map[string]int{}} }

// act executes an effect, unless the process is dead: then it has no effect and blocks
// until the caller gives up.
func (w *fakeHost) act(ctx context.Context, key string) error {
	if w.delay > 0 {
		select {
		case <-time.After(w.delay):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	w.mu.Lock()
	frozen := w.frozen
	if !frozen {
		w.made[key]++
		w.order = append(w.order, key)
	}
	w.mu.Unlock()
	if frozen {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return nil
}

func (w *fakeHost) freeze() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.frozen = true
}

// next returns the fake host of the next process.
func (w *fakeHost) next() *fakeHost {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := newFakeHost()
	for k, v := range w.made {
		n.made[k] = v
	}
	n.order = append(n.order, w.order...)
	n.delay, n.fail, n.turns = w.delay, w.fail, w.turns
	return n
}

func (w *fakeHost) count(key string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.made[key]
}

func (w *fakeHost) Lookup(name string) (runtime.CommandInfo, bool) {
	switch name {
	case "world/act", "world/fail", "world/flaky", "world/spawn":
		return runtime.CommandInfo{Name: name}, true
	case "world/look":
		return runtime.CommandInfo{Name: name, ReadOnly: true}, true
	case "world/note":
		return runtime.CommandInfo{Name: name, InStore: true}, true
	case "world/hidden/act":
		return runtime.CommandInfo{Name: name, Private: true}, true
	case "world/execute":
		return runtime.CommandInfo{Name: name, Private: true, ByName: true}, true
	}
	return runtime.CommandInfo{}, false
}

// Tools supports names and the pattern of all commands.
func (w *fakeHost) Tools(patterns []string) (list []runtime.CommandInfo) {
	for _, name := range []string{"world/act", "world/look"} {
		if slices.Contains(patterns, name) || slices.Contains(patterns, "world/*") {
			info, _ := w.Lookup(name)
			list = append(list, info)
		}
	}
	return list
}

func (w *fakeHost) Call(ctx context.Context, c runtime.CommandCall) (json.RawMessage, error) {
	var params struct {
		Value json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal(c.Params, &params); err != nil {
		return nil, err
	}
	switch c.Command {
	case "world/act", "world/hidden/act", "world/execute":
		if err := w.act(ctx, c.Key); err != nil {
			return nil, err
		}
	case "world/fail":
		if err := w.act(ctx, c.Key); err != nil {
			return nil, err
		}
		return nil, w.fail(string(params.Value), c.Attempt)
	case "world/flaky": // fails with a code that is retried, except in the second attempt
		if err := w.act(ctx, c.Key); err != nil {
			return nil, err
		}
		if c.Attempt != 2 {
			return nil, &abi.Error{Code: abi.Unavailable, Message: "not now"}
		}
	case "world/note":
		doc, err := c.Documents.Put(ctx, "notes", c.Key, params.Value, 0)
		if err != nil {
			return nil, err
		}
		return json.Marshal(map[string]any{"id": doc.ID, "revision": doc.Revision})
	case "world/spawn":
		if err := w.act(ctx, c.Key); err != nil {
			return nil, err
		}
		return json.RawMessage(`{"executionId":"x1"}`), nil
	case "world/look":
	default:
		return nil, &abi.Error{Code: abi.NotFound, Message: "no such command"}
	}
	return json.Marshal(map[string]any{"value": params.Value, "success": true})
}

func (w *fakeHost) Quote(context.Context, sentinels.Turn) (runtime.ModelQuote, error) {
	return runtime.ModelQuote{Provider: "world", Model: "oracle", Priced: true, Worst: sentinels.Usage{InputTokens: 100, OutputTokens: 100, CostUSD: 0.02}}, nil
}

func (w *fakeHost) Turn(ctx context.Context, t sentinels.Turn, delta func(string)) (sentinels.Reply, error) {
	if len(t.Messages) == 0 { // a request of a hostile guest
		return sentinels.Reply{}, &abi.Error{Code: abi.BadFields, Message: "no message"}
	}
	key := fmt.Sprintf("turn:%v", len(t.Messages))
	if err := w.act(ctx, key+t.Messages[0].Content); err != nil {
		return sentinels.Reply{}, err
	}
	w.mu.Lock()
	w.turns++
	w.mu.Unlock()
	delta("yes")
	return sentinels.Reply{Text: fmt.Sprintf("answer %d", len(t.Messages)), Finish: "stop", Provider: "world", Model: "oracle",
		Usage: sentinels.Usage{InputTokens: 10, OutputTokens: 5, CostUSD: 0.01}}, nil
}

func (w *fakeHost) Watch(ctx context.Context, _ sentinels.RunID, _ json.RawMessage) (json.RawMessage, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

func (w *fakeHost) FileStart(context.Context, runtime.FileWatch) (string, error) { return "", nil }

func (w *fakeHost) WatchFile(ctx context.Context, _ runtime.FileWatch) (json.RawMessage, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

func (w *fakeHost) EndBackground(context.Context, sentinels.RunID, func(string) bool) error {
	return nil
}

func (w *fakeHost) EndRun(context.Context, sentinels.RunID) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended++
	return nil
}

func (w *fakeHost) Interrupted(context.Context, sentinels.RunID) ([]runtime.InterruptedExecution, error) {
	return w.cut, nil
}

func (w *fakeHost) Memory(sentinels.RunID) (int64, string) { return w.memory, w.largest }

// steps is a small set of step types, written as Go functions.
func steps() *runtime.GoModule {
	object := json.RawMessage(`{"type":"object"}`)
	fields := func(props string) json.RawMessage {
		return json.RawMessage(`{"type":"object","properties":` + props + `}`)
	}
	return &runtime.GoModule{Name: "steps", Step: step, Types: []wasm.StepType{
		{Type: "call", Fields: fields(`{"command":{"type":"string"},"value":{}}`), Infer: []string{"command"}},
		{Type: "twice", Fields: fields(`{"command":{"type":"string"}}`)},
		{Type: "talk", Fields: fields(`{"prompt":{"type":"string"},"turns":{"type":"integer"}}`)},
		{Type: "seq", Fields: fields(`{"steps":{"x-sentinel":"steps"}}`)},
		{Type: "times", Fields: fields(`{"steps":{"x-sentinel":"steps"},"count":{"type":"integer"}}`)},
		{Type: "both", Fields: fields(`{"branches":{"x-sentinel":"branches"},"failFast":{"type":"boolean"}}`)},
		{Type: "if", Fields: fields(`{"check":{"type":"string","x-sentinel":"expression"},"then":{"x-sentinel":"steps"},"else":{"x-sentinel":"steps"}}`)},
		{Type: "pause", Fields: fields(`{"durationMs":{},"event":{},"decision":{},"timeoutMs_":{}}`)},
		{Type: "child", Fields: fields(`{"definition":{"x-sentinel":"definition"},"await":{"type":"boolean"},"inputs":{}}`)},
		{Type: "late", Fields: fields(`{"definition":{"x-sentinel":"definition"}}`)},
		{Type: "say", Fields: fields(`{"event":{"type":"string"},"data":{}}`)},
		{Type: "fickle", Fields: object},
		{Type: "restart", Fields: object},
		{Type: "stumble", Fields: object},
		{Type: "spin", Fields: object},
	}}
}

func step(g *runtime.GoGuest) (any, error) {
	f := g.Input.Step.Fields
	pass := func(a runtime.Answer) (any, error) {
		if a.Error != nil {
			return nil, a.Error
		}
		return a.OK, nil
	}
	str := func(name string) string {
		var s string
		_ = json.Unmarshal(f[name], &s)
		return s
	}
	switch g.Input.Step.Type {
	case "call":
		return pass(g.Call(abi.FuncCommand, map[string]any{"command": str("command"), "params": map[string]any{"value": f["value"]}}))
	case "twice":
		g.Call(abi.FuncCommand, map[string]any{"command": str("command"), "params": map[string]any{"value": 1}})
		return pass(g.Call(abi.FuncCommand, map[string]any{"command": str("command"), "params": map[string]any{"value": 2}}))
	case "talk":
		return talk(g, f, str("prompt"))
	case "seq":
		return block(g, map[string]any{"blocks": []any{map[string]any{"field": "steps"}}})
	case "times":
		return times(g, f)
	case "both":
		return both(g, f)
	case "if":
		v := g.Call(abi.FuncEval, map[string]any{"expression": str("check")})
		if v.Error != nil {
			return nil, v.Error
		}
		var e struct{ Truthy bool }
		_ = json.Unmarshal(v.OK, &e)
		field := "else"
		if e.Truthy {
			field = "then"
		}
		return block(g, map[string]any{"blocks": []any{map[string]any{"field": field}}})
	case "pause":
		req := map[string]any{}
		for k, v := range f {
			if k == "timeoutMs_" {
				k = "timeoutMs"
			}
			req[k] = v
		}
		return pass(g.Call(abi.FuncWait, req))
	case "late": // an effect, and then a child
		if a := g.Call(abi.FuncCommand, map[string]any{"command": "world/act", "params": map[string]any{"value": 1}}); a.Error != nil {
			return nil, a.Error
		}
		return pass(g.Call(abi.FuncSpawn, map[string]any{"field": "definition"}))
	case "child":
		a := g.Call(abi.FuncSpawn, map[string]any{"field": "definition", "inputs": f["inputs"]})
		if a.Error != nil {
			return nil, a.Error
		}
		if string(f["await"]) == "false" {
			return a.OK, nil
		}
		var c struct{ Run string }
		_ = json.Unmarshal(a.OK, &c)
		w := g.Call(abi.FuncWait, map[string]any{"run": c.Run})
		if w.Error != nil {
			return nil, w.Error
		}
		var r struct{ Result json.RawMessage }
		return r.Result, json.Unmarshal(w.OK, &r)
	case "say":
		return pass(g.Call(abi.FuncEmit, map[string]any{"event": str("event"), "data": f["data"]}))
	case "stumble": // calls that are refused before they begin, then one that is not
		g.Call(abi.FuncWait, map[string]any{"event": "x", "durationMs": 1})
		g.Call(abi.FuncLLM, map[string]any{"conversation": "none", "append": []any{}})
		g.Call("sentinel_nothing", map[string]any{})
		g.Call(abi.FuncCheckpoint, map[string]any{"stat": 1})
		return pass(g.Call(abi.FuncCommand, map[string]any{"command": "world/act", "params": map[string]any{"value": 1}}))
	case "restart": // ignores its state and starts from the beginning
		g.Call(abi.FuncCommand, map[string]any{"command": "world/act", "params": map[string]any{"value": 1}})
		g.Call(abi.FuncCheckpoint, map[string]any{"state": 1})
		return pass(g.Call(abi.FuncCommand, map[string]any{"command": "world/act", "params": map[string]any{"value": 2}}))
	case "fickle":
		fickle++
		return pass(g.Call(abi.FuncCommand, map[string]any{"command": "world/act", "params": map[string]any{"value": fickle}}))
	}
	return nil, &abi.Error{Code: abi.Plugin, Message: "unknown step"}
}

var fickle int // what a guest must not have: state outside its input

func block(g *runtime.GoGuest, req map[string]any) (any, error) {
	a := g.Call(abi.FuncBlock, req)
	if a.Error != nil {
		return nil, a.Error
	}
	var r struct {
		Blocks []struct {
			Success bool
			Output  json.RawMessage
			Error   *abi.Error
		}
	}
	if err := json.Unmarshal(a.OK, &r); err != nil {
		return nil, err
	}
	if e := r.Blocks[0].Error; e != nil {
		return nil, e
	}
	return r.Blocks[0].Output, nil
}

func times(g *runtime.GoGuest, f map[string]json.RawMessage) (any, error) {
	var count int
	var state struct {
		Passes int
		Last   any
	}
	_ = json.Unmarshal(f["count"], &count)
	_ = json.Unmarshal(g.Input.State, &state)
	last := state.Last
	for i := state.Passes; i < count; i++ {
		out, err := block(g, map[string]any{"blocks": []any{map[string]any{"field": "steps", "vars": map[string]any{"index": i}}}})
		if err != nil {
			return nil, err
		}
		last = out
		g.Call(abi.FuncCheckpoint, map[string]any{"state": map[string]any{"passes": i + 1, "last": last}})
	}
	return map[string]any{"passes": count, "output": last}, nil
}

func both(g *runtime.GoGuest, f map[string]json.RawMessage) (any, error) {
	var b struct{ Counts []int }
	_ = json.Unmarshal(f["branches"], &b)
	var blocks []any
	for i := range b.Counts {
		blocks = append(blocks, map[string]any{"field": fmt.Sprintf("branches.%d", i)})
	}
	a := g.Call(abi.FuncBlock, map[string]any{"blocks": blocks, "failFast": string(f["failFast"]) == "true"})
	if a.Error != nil {
		return nil, a.Error
	}
	return a.OK, nil
}

func talk(g *runtime.GoGuest, f map[string]json.RawMessage, prompt string) (any, error) {
	var turns int
	_ = json.Unmarshal(f["turns"], &turns)
	req := map[string]any{"append": []any{map[string]any{"role": "user", "content": prompt}}}
	var r struct {
		Conversation string
		Text         string
	}
	for i := 0; i < max(turns, 1); i++ {
		a := g.Call(abi.FuncLLM, req)
		if a.Error != nil {
			return nil, a.Error
		}
		if err := json.Unmarshal(a.OK, &r); err != nil {
			return nil, err
		}
		req = map[string]any{"conversation": r.Conversation, "append": []any{map[string]any{"role": "user", "content": "go on"}}}
	}
	return map[string]any{"text": r.Text}, nil
}
