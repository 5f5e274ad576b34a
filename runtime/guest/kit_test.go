package guest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime/guest"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/abitest"
)

// A spoiler wraps a valid guest and violates one clause.
type spoiler struct {
	abitest.Host
	manifest func([]byte) []byte
	input    func(map[string]any)
	request  func(function string, request map[string]any)
	answer   func([]byte) []byte
	output   func([]byte) []byte
	fault    func(*abi.Error)
	problems func([]byte) []byte
}

type spoiled struct {
	abitest.Guest
	by *spoiler
}

func (s *spoiler) Load(ctx context.Context, module []byte) (abitest.Guest, error) {
	g, err := s.Host.Load(ctx, module)
	return spoiled{g, s}, err
}

func (g spoiled) Describe(ctx context.Context) ([]byte, error) {
	text, err := g.Guest.Describe(ctx)
	if g.by.manifest != nil {
		text = g.by.manifest(text)
	}
	return text, err
}

// edit changes a JSON object.
func edit(text []byte, f func(map[string]any)) []byte {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var m map[string]any
	if d.Decode(&m) != nil {
		return text
	}
	f(m)
	out, err := json.Marshal(m)
	if err != nil {
		return text
	}
	return out
}

func (g spoiled) Run(ctx context.Context, inv abitest.Invocation) (abitest.Result, error) {
	if g.by.input != nil {
		inv.Input = edit(inv.Input, g.by.input)
	}
	if call := inv.Call; call != nil {
		inv.Call = func(ctx context.Context, function string, request []byte) (abitest.Reply, error) {
			if g.by.request != nil {
				request = edit(request, func(m map[string]any) { g.by.request(function, m) })
			}
			reply, err := call(ctx, function, request)
			if g.by.answer != nil {
				reply.Body = g.by.answer(reply.Body)
			}
			return reply, err
		}
	}
	result, err := g.Guest.Run(ctx, inv)
	if e := abi.As(err); e != nil && g.by.fault != nil {
		spoilt := *e
		g.by.fault(&spoilt)
		err = &spoilt
	}
	if g.by.output != nil && err == nil {
		result.Output = g.by.output(result.Output)
	}
	return result, err
}

func (g spoiled) Validate(ctx context.Context, input []byte) ([]byte, error) {
	text, err := g.Guest.Validate(ctx, input)
	if g.by.problems != nil {
		text = g.by.problems(text)
	}
	return text, err
}

// Each guest violates one clause, and a check of that clause in the kit fails.
func TestKitFindsFaults(t *testing.T) {
	host, err := guest.Open(guest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	module := read(t, filepath.Join("..", "..", "sdk", "rust", "conformance", "conformance.wasm"))
	var counter atomic.Int64
	for _, c := range []struct {
		name, clause string
		spoiler
	}{
		{"has another manifest each time", "A1.1", spoiler{manifest: func(b []byte) []byte {
			return edit(b, func(m map[string]any) { m["version"] = counter.Add(1) })
		}}},
		{"does not ask for folders", "A2.4", spoiler{manifest: func(b []byte) []byte { return bytes.Replace(b, []byte(`"folder"`), []byte(`"llm"`), 1) }}},
		{"loses a mark", "A2.3", spoiler{manifest: func(b []byte) []byte {
			return bytes.Replace(b, []byte(`x-sentinel":"steps`), []byte(`x-sentinel":"raw`), 1)
		}}},
		{"finds no problems", "A1.3", spoiler{problems: func([]byte) []byte { return []byte(`{"problems":[]}`) }}},
		{"cuts a text that is no ASCII", "A1.2", spoiler{output: func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("✓"), []byte("?")) }}},
		{"rounds numbers", "A1.2", spoiler{output: func(b []byte) []byte {
			return bytes.ReplaceAll(b, []byte("9007199254740991"), []byte("9007199254740992"))
		}}},
		{"forgets the retry", "A3.3", spoiler{input: func(m map[string]any) { delete(m, "retry") }}},
		{"forgets its state", "A6.12", spoiler{input: func(m map[string]any) { delete(m, "state") }}},
		{"loses hints", "A5.1", spoiler{fault: func(e *abi.Error) { e.Hint = "" }}},
		{"makes every error its own", "A1.4", spoiler{fault: func(e *abi.Error) { e.Code = abi.Plugin }}},
		{"drops a temperature of 0", "A6.4", spoiler{request: func(function string, m map[string]any) {
			if function == abi.FuncLLM && m["temperature"] == json.Number("0") {
				delete(m, "temperature")
			}
		}}},
		{"offers no tools instead of all", "A6.3", spoiler{request: func(function string, m map[string]any) {
			if function == abi.FuncCommand && m["tools"] == nil {
				m["tools"] = []any{}
			}
		}}},
		// Any check that executes a step finds that its replay differs, clause A6.2.
		{"asks differently each time", "A6.10", spoiler{request: func(function string, m map[string]any) {
			if function == abi.FuncEmit {
				m["nonce"] = counter.Add(1)
			}
		}}},
		{"knows one level of log lines", "A6.14", spoiler{request: func(function string, m map[string]any) {
			if function == abi.FuncLog {
				m["level"] = "info"
			}
		}}},
		{"fills in secrets in every body", "A6.13", spoiler{request: func(function string, m map[string]any) {
			if function == abi.FuncHTTP && m["body"] != nil {
				m["bodySecrets"] = true
			}
		}}},
		{"cannot have secrets in a body", "A6.13", spoiler{request: func(function string, m map[string]any) { delete(m, "bodySecrets") }}},
		{"loses the exit code", "A6.5", spoiler{answer: func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(`"exitCode":2`), []byte(`"exitCode":0`)) }}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := c.spoiler
			s.Host = guest.Kit(host, guest.LoadOptions{})
			if report := abitest.Check(t.Context(), &s, module, c.clause); len(report) < 2 || len(report.Failed()) == 0 {
				t.Errorf("no check of clause %s fails:\n%s", c.clause, report)
			}
		})
	}
}
