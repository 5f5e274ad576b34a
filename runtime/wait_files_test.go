package runtime_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// starved is a fake host whose next calls find no file descriptor.
type starved struct {
	*fakeHost
	mu    sync.Mutex
	left  int // calls that fail so
	calls int
}

func (s *starved) next() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if s.left--; s.left < 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", abi.New(abi.Unavailable, "open: too many open files"), syscall.EMFILE)
}

func (s *starved) Call(ctx context.Context, c runtime.CommandCall) (json.RawMessage, error) {
	if err := s.next(); err != nil {
		return nil, err
	}
	return s.fakeHost.Call(ctx, c)
}

func (s *starved) Turn(ctx context.Context, t sentinels.Turn, delta func(string)) (sentinels.Reply, error) {
	if err := s.next(); err != nil {
		return sentinels.Reply{}, err
	}
	return s.fakeHost.Turn(ctx, t, delta)
}

func (s *starved) Do(context.Context, runtime.PluginCall) (json.RawMessage, error) {
	return json.RawMessage("{}"), s.next()
}

// A run whose call finds no file descriptor waits and makes the call again. It
// does not fail, its attempts do not count, and the logs say why it waits.
func TestRunWaitsForFiles(t *testing.T) {
	for name, c := range map[string]struct{ function, request string }{
		"a command":        {abi.FuncCommand, `{"command":"world/act","params":{"value":1}}`},
		"a reading one":    {abi.FuncCommand, `{"command":"world/look"}`},
		"a model":          {abi.FuncLLM, `{"append":[{"role":"user","content":"hi"}]}`},
		"an HTTP request":  {abi.FuncHTTP, `{"url":"https://example.com","method":"POST"}`},
		"a file operation": {abi.FuncFile, `{"folder":"data","op":"read","path":"x"}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := &starved{fakeHost: newFakeHost(), left: 3}
			var host bytes.Buffer
			var mu sync.Mutex
			var told []string
			rt, err := runtime.OpenOn(t.Context(), store.NewMemory(), runtime.Options{
				Commands: w, Models: w, Executions: w, HTTP: w, Folders: w,
				Logger: slog.New(slog.NewTextHandler(&host, nil)),
				Observer: runtime.Observer{Progress: func(p runtime.Progress) {
					mu.Lock()
					defer mu.Unlock()
					if p.Event == runtime.OnLog {
						told = append(told, p.Level+": "+p.Message)
					}
				}},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer rt.Close()
			var got runtime.Answer
			err = runtime.AddModule(rt, &runtime.GoModule{
				Name: "raw", Types: []wasm.StepType{{Type: "raw", Fields: json.RawMessage(`{"type":"object"}`)}},
				Step: func(g *runtime.GoGuest) (any, error) {
					got = g.Call(c.function, json.RawMessage(c.request))
					return nil, nil
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			res := runToEnd(t, rt, `{"name":"r","steps":[{"type":"raw"}]}`, runtime.StartOptions{})
			if err := rt.Close(); err != nil { // the log is whole
				t.Fatal(err)
			}
			if res.Status != sentinels.StatusCompleted || got.Error != nil || w.calls != 4 {
				t.Errorf("run %s, call answered %v after %d calls", res.Status, got.Error, w.calls)
			}
			if n := strings.Count(host.String(), "run waits for an open file"); n != 3 {
				t.Errorf("%d lines in the host's log:\n%s", n, host.String())
			}
			mu.Lock()
			defer mu.Unlock()
			if len(told) != 1 || !strings.Contains(told[0], "warn: ") || !strings.Contains(told[0], "waits for an open file: open: too many open files") {
				t.Errorf("the run's log has %q", told)
			}
		})
	}
}

// The wait ends with the step's time limit.
func TestWaitForFilesEnds(t *testing.T) {
	w := &starved{fakeHost: newFakeHost(), left: 1 << 30}
	rt, err := runtime.OpenOn(t.Context(), store.NewMemory(), runtime.Options{Commands: w, Models: w, Executions: w})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	if err := runtime.AddModule(rt, steps()); err != nil {
		t.Fatal(err)
	}
	res := runToEnd(t, rt, `{"name":"r","steps":[{"type":"call","command":"world/act","timeoutMs":200}]}`, runtime.StartOptions{})
	if res.Status != sentinels.StatusFailed || abi.CodeOf(res.Error) != abi.Timeout {
		t.Errorf("run %s: %v", res.Status, res.Error)
	}
}
