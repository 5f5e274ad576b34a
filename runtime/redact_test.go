package runtime_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

const tokenValue = "t0ken-of-the-host"

func redactToken(v []byte) []byte {
	return bytes.ReplaceAll(v, []byte(tokenValue), []byte("[redacted]"))
}

// leakyCommands have a secret in results and errors, and note what they are given.
type leakyCommands struct {
	*fakeHost
	given []string
}

func (l *leakyCommands) Lookup(name string) (runtime.CommandInfo, bool) {
	return runtime.CommandInfo{Name: name, ReadOnly: name != "leak/act"}, strings.HasPrefix(name, "leak/")
}

func (l *leakyCommands) Call(_ context.Context, c runtime.CommandCall) (json.RawMessage, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch c.Command {
	case "leak/read":
		return json.Marshal("the token is " + tokenValue)
	case "leak/act":
		l.given = append(l.given, string(c.Params))
		return json.RawMessage("true"), nil
	}
	return nil, &abi.Error{Code: abi.Internal, Message: "failed with " + tokenValue, Hint: "not " + tokenValue}
}

// passOn reads, hands what it read to another command, logs it and returns it.
func passOn(g *runtime.GoGuest) (any, error) {
	read := g.Call(abi.FuncCommand, map[string]any{"command": "leak/read", "params": map[string]any{}})
	if read.Error != nil {
		return nil, read.Error
	}
	acted := g.Call(abi.FuncCommand, map[string]any{"command": "leak/act", "params": map[string]any{"value": read.OK}})
	if acted.Error != nil {
		return nil, acted.Error
	}
	failed := g.Call(abi.FuncCommand, map[string]any{"command": "leak/fail", "params": map[string]any{}})
	g.Call(abi.FuncLog, map[string]any{"level": "info", "message": "read " + tokenValue})
	return map[string]any{"read": read.OK, "failed": failed.Error.Message, "own": tokenValue}, nil
}

func openLeaky(t *testing.T, db store.Store, opt runtime.Options) (*runtime.Runtime, *leakyCommands) {
	t.Helper()
	l := &leakyCommands{fakeHost: newFakeHost()}
	opt.Commands, opt.Redact = l, redactToken
	rt, err := runtime.OpenOn(context.Background(), db, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	if err := runtime.AddModule(rt, &runtime.GoModule{Name: "leaky", Step: passOn, Types: []wasm.StepType{{Type: "pass_on", Fields: json.RawMessage(`{"type":"object"}`)}}}); err != nil {
		t.Fatal(err)
	}
	return rt, l
}

const passesOn = `{"name":"p","steps":[{"type":"pass_on","outputTo":"a"}],"loop":{"type":"once"}}`

// TestSecretsStayOutOfProgressAndResults has a secret come up in every answer.
func TestSecretsStayOutOfProgressAndResults(t *testing.T) {
	var mu sync.Mutex
	var told []string
	rt, l := openLeaky(t, store.NewMemory(), runtime.Options{Observer: runtime.Observer{Progress: func(p runtime.Progress) {
		mu.Lock()
		defer mu.Unlock()
		text, err := json.Marshal(p)
		if err != nil {
			t.Error(err)
		}
		told = append(told, string(text))
	}}})
	res := runToEnd(t, rt, passesOn, runtime.StartOptions{})
	trace, err := rt.Trace(res.Run)
	if err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	for what, v := range map[string]any{"progress": told, "result": res, "trace": trace, "given to a command": l.given} {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), tokenValue) || !strings.Contains(string(text), "[redacted]") {
			t.Errorf("%s: %s", what, text)
		}
	}
}

// TestReplayOfRedactedAnswers crashes after the second call of a step. What the
// journal has of the first answer is what the guest saw, so the step makes the
// same request again.
func TestReplayOfRedactedAnswers(t *testing.T) {
	f := newRecordingStore()
	rt, _ := openLeaky(t, f, runtime.Options{})
	want := runToEnd(t, rt, passesOn, runtime.StartOptions{})
	rt.Close()
	acted := func(r *journal.Record) bool { return r.CallEnd != nil && r.CallEnd.Seq >= 2 }
	db := f.prefix(t, f.after(t, 1, acted))
	again, l := openLeaky(t, db.Memory, runtime.Options{})
	if err := again.Resume(within(t), want.Run, runtime.ResumeOptions{}); err != nil {
		t.Fatal(err)
	}
	got := wait(t, again, want.Run)
	if got.Status != sentinels.StatusCompleted || fmt.Sprint(got.Variables) != fmt.Sprint(want.Variables) {
		t.Errorf("%s with %s: %v, want %s", got.Status, got.Variables["a"], got.Error, want.Variables["a"])
	}
	if len(l.given) != 0 {
		t.Errorf("the recorded call was made again: %v", l.given)
	}
}

// echoes calls a command with its field "text", so that the command notes it.
func echoes(g *runtime.GoGuest) (any, error) {
	if answer := g.Call(abi.FuncCommand, map[string]any{"command": "leak/act", "params": map[string]any{"text": g.Input.Step.Fields["text"]}}); answer.Error != nil {
		return nil, answer.Error
	}
	return nil, nil
}

// TestSecretsInDefinitions recovers runs before the first step. A text that is a secret by now was
// removed from the definition in their records: a run of a stored sentinel executes what is stored,
// any other one ends with an error.
func TestSecretsInDefinitions(t *testing.T) {
	const text = `{"id":"e","name":"e","steps":[{"type":"echo","text":"say ` + tokenValue + `"}],"loop":{"type":"once"}}`
	const child = `{"id":"p","name":"p","steps":[{"type":"child","definition":{"$ref":"e"}}],"loop":{"type":"once"}}`
	open := func(t *testing.T, f *recordingStore) (*runtime.Runtime, *leakyCommands) {
		rt, l := openLeaky(t, f, runtime.Options{})
		if err := runtime.AddModule(rt, &runtime.GoModule{Name: "echo", Step: echoes, Types: []wasm.StepType{{Type: "echo", Fields: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`)}}}); err != nil {
			t.Fatal(err)
		}
		if err := runtime.AddModule(rt, steps()); err != nil {
			t.Fatal(err)
		}
		return rt, l
	}
	refused := func(t *testing.T, e *abi.Error) {
		t.Helper()
		if e == nil || e.Code != abi.Conflict || !strings.Contains(e.Message, "secret") || strings.Contains(e.Error(), tokenValue) {
			t.Errorf("%v", e)
		}
	}
	started := func(r *journal.Record) bool { return r.RunStart != nil }
	for _, stored := range []bool{true, false} {
		t.Run(fmt.Sprint("stored ", stored), func(t *testing.T) {
			f := newRecordingStore()
			rt, l := open(t, f)
			var id sentinels.RunID
			if stored {
				s, err := rt.Save(within(t), decode(t, rt, text), 0)
				if err != nil {
					t.Fatal(err)
				}
				id = startStored(t, rt, s, runtime.StartOptions{})
			} else {
				id = start(t, rt, text, runtime.StartOptions{})
			}
			if res := wait(t, rt, id); res.Status != sentinels.StatusCompleted || len(l.given) != 1 || !strings.Contains(l.given[0], tokenValue) {
				t.Fatalf("%s: %v, %q", res.Status, res.Error, l.given)
			}
			rt.Close()
			again, l := open(t, f.prefix(t, f.after(t, 1, started)))
			err := again.Resume(within(t), id, runtime.ResumeOptions{})
			if !stored {
				if err == nil {
					err = wait(t, again, id).Error
				}
				refused(t, abi.As(err))
				if _, err := again.Fork(within(t), id, runtime.ForkOptions{}); err == nil {
					t.Error("a fork executes the definition without its secret")
				}
			} else if res := wait(t, again, id); err != nil || res.Status != sentinels.StatusCompleted || len(l.given) != 1 || !strings.Contains(l.given[0], tokenValue) {
				t.Errorf("%v; %s: %v, %q", err, res.Status, res.Error, l.given)
			}
		})
	}
	t.Run("named", func(t *testing.T) {
		rt, l := open(t, newRecordingStore())
		res := runToEnd(t, rt, child, runtime.StartOptions{Named: map[sentinels.ID]*sentinels.Definition{"e": decode(t, rt, text)}})
		refused(t, res.Error)
		if len(l.given) > 0 {
			t.Errorf("%q", l.given)
		}
	})
}

// setsVariables sets variables to a secret, one of them in a text that is a blob, and has it in a log line and an event.
func setsVariables(g *runtime.GoGuest) (any, error) {
	long := strings.Repeat("x", 70<<10) + tokenValue
	if set := g.Call(abi.FuncVar, map[string]any{"set": map[string]any{"small": tokenValue, "deep": map[string]any{"a": []string{tokenValue}}, "long": long}}); set.Error != nil {
		return nil, set.Error
	}
	if emitted := g.Call(abi.FuncEmit, map[string]any{"event": "made", "data": map[string]any{"v": tokenValue}}); emitted.Error != nil {
		return nil, emitted.Error
	}
	g.Call(abi.FuncLog, map[string]any{"level": "info", "message": tokenValue})
	got := g.Call(abi.FuncVar, map[string]any{"get": "small"})
	if got.Error != nil {
		return nil, got.Error
	}
	return map[string]any{"got": got.OK}, nil
}

// TestSecretsInVariables: a secret that the code of a step sets a variable to, or that a start gives, is nowhere in the store, in
// progress, events, results, traces or log lines.
func TestSecretsInVariables(t *testing.T) {
	db := newRecordingStore()
	var logs bytes.Buffer
	var mu sync.Mutex
	var shown []string
	opt := runtime.Options{Logger: slog.New(slog.NewTextHandler(&logs, &slog.HandlerOptions{Level: slog.LevelDebug})), Observer: runtime.Observer{Progress: func(p runtime.Progress) {
		mu.Lock()
		defer mu.Unlock()
		text, err := json.Marshal(p)
		if err != nil {
			t.Error(err)
		}
		shown = append(shown, string(text))
	}}}
	rt, _ := openLeaky(t, db, opt)
	if err := runtime.AddModule(rt, &runtime.GoModule{Name: "sets", Step: setsVariables, Types: []wasm.StepType{{Type: "sets", Fields: json.RawMessage(`{"type":"object"}`)}}}); err != nil {
		t.Fatal(err)
	}
	res := runToEnd(t, rt, `{"id":"v","name":"v","steps":[{"type":"sets","outputTo":"out"},{"type":"sets","condition":"$small === 't0ken'"}],"loop":{"type":"count","max":2}}`, runtime.StartOptions{
		Inputs: map[string]json.RawMessage{"in": json.RawMessage(`"` + tokenValue + `"`)}, Variables: map[string]json.RawMessage{"given": json.RawMessage(`["` + tokenValue + `"]`)},
	})
	if res.Status != sentinels.StatusCompleted || string(res.Variables["small"]) != `"[redacted]"` || !bytes.HasSuffix(res.Variables["long"], []byte(`[redacted]"`)) {
		t.Fatalf("%s %v: %.100s", res.Status, res.Error, res.Variables["small"])
	}
	events, err := rt.Events("**", 100)
	if err != nil || len(events) != 2 {
		t.Fatal(events, err)
	}
	trace, err := rt.Trace(res.Run)
	if err != nil {
		t.Fatal(err)
	}
	rt.Close()
	mu.Lock()
	defer mu.Unlock()
	for what, v := range map[string]any{"progress": shown, "result": res, "trace": trace, "events": events, "log": logs.String()} {
		if text, err := json.Marshal(v); err != nil || bytes.Contains(text, []byte(tokenValue)) {
			t.Errorf("%s has the secret, %v: %.300s", what, err, text)
		}
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	for _, b := range db.batches {
		for _, a := range b.Appends {
			if bytes.Contains(a.Record, []byte(tokenValue)) {
				t.Errorf("record %d: %.300s", a.Seq, a.Record)
			}
		}
		for _, p := range b.Puts {
			if bytes.Contains(p.Value, []byte(tokenValue)) {
				t.Errorf("%s %s: %.300s", p.Bucket, p.Key, p.Value)
			}
		}
	}
	for _, b := range db.blobs {
		if bytes.Contains(b, []byte(tokenValue)) {
			t.Errorf("a blob of %d bytes has the secret", len(b))
		}
	}
}
