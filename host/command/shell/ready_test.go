//go:build unix

package shell_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/command/shell"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// freeAddress returns an address of this machine where nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// serveOnceStarted answers requests at an address as soon as the program has made the file started.
func (b *bench) serveOnceStarted(address string, answer http.HandlerFunc) {
	server := httptest.NewUnstartedServer(answer)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			if _, err := os.Stat(filepath.Join(b.dir, "started")); err == nil {
				break
			}
			select {
			case <-b.t.Context().Done():
				return
			case <-time.After(time.Millisecond):
			}
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			b.t.Error(err)
			return
		}
		server.Listener.Close()
		server.Listener = l
		server.Start()
	}()
	b.t.Cleanup(func() {
		<-done
		server.Close()
	})
}

// TestReady: the call ends when its probe is answered, not before, and the program lives on.
func TestReady(t *testing.T) {
	address := freeAddress(t)
	_, port, _ := net.SplitHostPort(address)
	var asked atomic.Int32
	flapping := func(w http.ResponseWriter, _ *http.Request) {
		switch asked.Add(1) {
		case 1:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 2:
			panic(http.ErrAbortHandler) // takes the connection and does not answer
		default:
			http.Redirect(w, &http.Request{Method: http.MethodGet}, "http://192.0.2.1/", http.StatusFound) // is not followed
		}
	}
	for name, tt := range map[string]struct {
		ready params
		line  string
		asked int32
	}{
		"http":  {params{"http": "http://" + address + "/health"}, "touch started; sleep 600", 3},
		"tcp":   {params{"tcp": port}, "touch started; sleep 600", 0},
		"match": {params{"match": "^listening on \\d+$"}, "echo starting; echo listening on 80; sleep 600", 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, shell.Options{})
			asked.Store(0)
			if name != "match" {
				b.serveOnceStarted(address, flapping)
			}
			o, err := b.call(t.Context(), "code/shell/execute", command.Call{Key: "k", By: command.ByStep, Run: "run-1"}, params{"command": tt.line, "wait": false, "ready": tt.ready})
			if err != nil || !o.Running || o.PID == 0 || o.ExecutionID == "" {
				t.Fatalf("%+v %v", o, err)
			}
			if tt.ready["http"] != nil && o.URL != tt.ready["http"] || asked.Load() < tt.asked {
				t.Errorf("url %q, asked %d times", o.URL, asked.Load())
			}
			if killed := b.do("code/shell/kill", params{"executionId": o.ExecutionID}); !killed.Killed {
				t.Error("it did not live")
			}
		})
	}
}

// TestNotReady: a program that ends before it is ready, or is not ready in time, is an error with its exit code and
// last lines, and nothing of it is left.
func TestNotReady(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // of another program, and answers no request
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	free := freeAddress(t)
	for name, tt := range map[string]struct {
		line  string
		ready params
		code  abi.Code
		want  string
		data  string
	}{
		"ended":          {"echo cannot bind >&2; exit 3", params{"tcp": free}, abi.Plugin, "ended with exit code 3 before it was ready, after writing:\ncannot bind", `"exitCode":3`},
		"ended by 0":     {"echo done", params{"http": "http://" + free}, abi.Plugin, "ended with exit code 0 before it was ready, after writing:\ndone", `"exitCode":0`},
		"no match":       {"echo failed; exit 4", params{"match": "ready"}, abi.Plugin, "ended with exit code 4 before it was ready, after writing:\nfailed", `"exitCode":4`},
		"signal":         {"kill -9 $$", params{"match": "ready"}, abi.Plugin, "ended with the signal ", `"exitCode":`},
		"late":           {"echo starting; sleep 600", params{"tcp": free, "timeoutMs": 200}, abi.Timeout, "was not ready within 200ms", `"executionId":"`},
		"late match":     {"echo starting; sleep 600", params{"match": "ready", "timeoutMs": 200}, abi.Timeout, `no line matches "ready"`, `"executionId":"`},
		"taken":          {"touch started", params{"tcp": silent.Addr().String()}, abi.Conflict, "another program listens there", ""},
		"elsewhere":      {"touch started", params{"tcp": "192.0.2.1:80"}, abi.BadFields, "is not on this machine", ""},
		"metadata":       {"touch started", params{"http": "http://169.254.169.254/latest"}, abi.BadFields, "is not on this machine", ""},
		"a name":         {"touch started", params{"http": "http://example.com"}, abi.BadFields, "is not on this machine", ""},
		"https":          {"touch started", params{"http": "https://localhost:1"}, abi.BadFields, "for https use tcp", ""},
		"user":           {"touch started", params{"http": "http://a:b@localhost:1"}, abi.BadFields, "is not a URL", ""},
		"port":           {"touch started", params{"tcp": "70000"}, abi.BadFields, "is not a port", ""},
		"pattern":        {"touch started", params{"match": "("}, abi.BadFields, "missing closing", ""},
		"two":            {"touch started", params{"match": "a", "tcp": "1"}, abi.BadFields, "exactly one of", ""},
		"none":           {"touch started", params{}, abi.BadFields, "exactly one of", ""},
		"not background": {"touch started", params{"match": "a"}, abi.BadFields, "needs wait false", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, shell.Options{})
			_, err := b.call(t.Context(), "code/shell/execute", command.Call{}, params{"command": tt.line, "wait": name == "not background", "ready": tt.ready})
			e := abi.As(err)
			if e == nil || e.Code != tt.code || !strings.Contains(e.Message, tt.want) || !strings.Contains(string(e.Data), tt.data) {
				t.Fatalf("%v %+v, want %s with %q", err, e, tt.code, tt.want)
			}
			if live := b.live(); live != 0 {
				t.Errorf("%d executions live", live)
			}
			if _, err := os.Stat(filepath.Join(b.dir, "started")); err == nil {
				t.Error("the program was started")
			}
		})
	}
}

// live returns how many executions of the run live.
func (b *bench) live() int {
	b.t.Helper()
	text := fmt.Appendf(nil, `{"running":true}`)
	answer, err := b.reg.Call(b.t.Context(), &command.Call{Command: "code/shell/list", Params: text, Workspace: b.dir, By: command.ByStep, Run: "run-1"})
	if err != nil {
		b.t.Fatal(err)
	}
	return strings.Count(string(answer), `"executionId"`)
}

// TestReadyIsCancelled: a call that ends while it waits ends the program.
func TestReadyIsCancelled(t *testing.T) {
	b := newBench(t, shell.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for {
			if _, err := os.Stat(filepath.Join(b.dir, "started")); err == nil || t.Context().Err() != nil {
				cancel()
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	_, err := b.call(ctx, "code/shell/execute", command.Call{}, params{"command": "touch started; sleep 600", "wait": false, "ready": params{"match": "never"}})
	if err == nil || b.live() != 0 {
		t.Errorf("%v, %d live", err, b.live())
	}
}

// TestEndBackground: a program ends with the loop around its step if it was started so, and with no other.
func TestEndBackground(t *testing.T) {
	b := newBench(t, shell.Options{})
	start := func(key, path, endsWith string) string {
		o, err := b.call(t.Context(), "code/shell/execute", command.Call{Key: key, By: command.ByStep, Run: "run-1", Path: path}, params{"command": "sleep 600", "wait": false, "endsWith": endsWith})
		if err != nil {
			t.Fatal(err)
		}
		return o.ExecutionID
	}
	inLoop := start("a", "1#0.steps.0", "loop")
	start("b", "1#0.steps.1", "run")
	start("c", "12#0.steps.0", "loop")
	start("d", "2", "loop")
	if err := b.m.EndBackground(t.Context(), "run-1", func(path string) bool { return strings.HasPrefix(path, "1#") }); err != nil {
		t.Fatal(err)
	}
	if live := b.live(); live != 3 {
		t.Errorf("%d live, want 3", live)
	}
	if killed := b.do("code/shell/kill", params{"executionId": inLoop}); killed.Killed {
		t.Error("that of the loop still lived")
	}
}
