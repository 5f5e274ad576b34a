package wasm_test

import (
	"context"
	"errors"
	"fmt"
	stdruntime "runtime"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

func TestRun(t *testing.T) {
	h := open(t, wasm.Options{})
	for _, c := range []struct{ guest, input, want string }{
		{"echo", `{"text":"héllo ✓ wörld"}`, `{"text":"héllo ✓ wörld"}`},
		{"echo", `null`, `null`},
		{"hostcall", `{"expression":"1"}`, `{"ok":{"expression":"1"}}`},
		{"multivalue", ``, `true`},
		{"tablebomb", ``, `true`},
		{"asked", ``, `true`},
	} {
		t.Run(c.guest, func(t *testing.T) {
			m := load(t, h, watGuest(t, c.guest), wasm.LoadOptions{})
			defer m.Release()
			got, err := m.Run(context.Background(), wasm.Invocation{Input: []byte(c.input), Call: echoRequest})
			if err != nil || string(got.Output) != c.want {
				t.Errorf("Run: %s, %v, want %s", got.Output, err, c.want)
			}
		})
	}
}

func TestRunFails(t *testing.T) {
	h := open(t, wasm.Options{})
	for _, c := range []struct {
		guest, input string
		code         abi.Code
		words        string
	}{
		{"trap", ``, abi.Trap, "unreachable"},
		{"loop", ``, abi.Timeout, "computed for more than 50ms"},
		{"tree", ``, abi.Timeout, "computed for more than 50ms"},
		{"spam", ``, abi.Limit, "stdout and stderr"},
		{"memorybomb", ``, abi.Memory, "limit of 4194304 bytes"},
		{"kernelbomb", ``, abi.Memory, "memory limit"},
		{"hugeoutput", ``, abi.Output, "3000000 bytes, at most 1048576"},
		{"bogusoutput", ``, abi.Output, "not a JSON object"},
		{"nooutput", ``, abi.Output, "not a JSON object"},
		{"notjson", ``, abi.Output, "all went well"},
		{"nokey", ``, abi.Output, `no key "output"`},
		{"status", ``, abi.Plugin, "returned 7"},
		{"exit", `0`, abi.Trap, "exited with code 0"},
		{"exit", `3`, abi.Trap, "exited with code 3"},
		{"vars", ``, abi.Trap, "Vars are disabled"},
		{"errorobject", `in words`, abi.Plugin, "in words"},
		{"errorobject", `{"code":"unavailable","message":"later"}`, abi.Unavailable, "later"},
		{"errorobject", `{"code":"made_up","message":"odd"}`, "made_up", "odd"},
		{"errorobject", `{"code":"Made up","message":"odd"}`, abi.Plugin, "odd"},
		{"errorobject", `{"message":5}`, abi.Plugin, `{"message":5}`},
	} {
		t.Run(c.guest+c.input, func(t *testing.T) {
			m := load(t, h, watGuest(t, c.guest), wasm.LoadOptions{})
			defer m.Release()
			compute := time.Minute // none of those that end by themselves is near it on a busy machine
			if c.code == abi.Timeout {
				compute = 50 * time.Millisecond
			}
			_, err := m.Run(context.Background(), wasm.Invocation{
				Input: []byte(c.input), Call: echoRequest, Compute: compute, Limits: wasm.Limits{MemoryBytes: 4 << 20},
			})
			wantError(t, err, c.code, c.words)
		})
	}
}

func TestStackOverflow(t *testing.T) {
	m := load(t, open(t, wasm.Options{}), watGuest(t, "recursion"), wasm.LoadOptions{})
	defer m.Release()
	_, err := m.Run(context.Background(), wasm.Invocation{})
	wantError(t, err, abi.Trap, "stack overflow")
}

func TestGuestErrorFields(t *testing.T) {
	m := load(t, open(t, wasm.Options{}), watGuest(t, "errorobject"), wasm.LoadOptions{})
	defer m.Release()
	_, err := m.Run(context.Background(), wasm.Invocation{Input: []byte(
		`{"code":"unavailable","message":"busy","field":"url","retryAfterMs":1500,"permanent":true,"hint":"wait"}`)})
	want := abi.Error{Code: abi.Unavailable, Message: "busy", Field: "url", RetryAfterMs: 1500, Permanent: true, Hint: "wait"}
	if e := abi.As(err); e == nil || *e != want {
		t.Errorf("error %+v, want %+v", e, want)
	}
}

// TestBadHandle: a host call with an invalid handle gets an error reply, and the
// guest continues.
func TestBadHandle(t *testing.T) {
	m := load(t, open(t, wasm.Options{}), watGuest(t, "badhandle"), wasm.LoadOptions{})
	defer m.Release()
	for pick, want := range map[string]string{
		"0": "bad_fields", "1": "bad_fields", "2": "bad_fields", "3": "bad_fields", "4": "bad_fields", "5": "limit",
	} {
		got, err := m.Run(context.Background(), wasm.Invocation{Input: []byte(pick), Call: func(context.Context, string, []byte) (wasm.Reply, error) {
			t.Errorf("handle %s reached Call", pick)
			return wasm.Reply{Body: []byte(`{}`)}, nil
		}})
		if err != nil || !strings.Contains(string(got.Output), `{"error":{"code":"`+want) {
			t.Errorf("handle %s: %s, %v, want a reply of code %s", pick, got.Output, err, want)
		}
	}
}

// TestOverwrittenCallMemory: a guest that overwrites its call memory fails by itself.
func TestOverwrittenCallMemory(t *testing.T) {
	m := load(t, open(t, wasm.Options{}), watGuest(t, "smash"), wasm.LoadOptions{})
	defer m.Release()
	for _, b := range []string{"\x00", "\x01", "\x10", "\x7f", "\xff"} {
		_, err := m.Run(context.Background(), wasm.Invocation{Input: []byte(b), Call: echoRequest, Compute: 300 * time.Millisecond})
		if err == nil {
			continue // the bytes were valid
		}
		wantError(t, err, abi.CodeOf(err), "")
		if abi.CodeOf(err) == abi.Internal {
			t.Errorf("a fault of the guest is reported as one of the host: %v", err)
		}
		t.Log(err)
	}
}

// TestLargeReply: a reply beyond MessageBytes becomes an error reply.
func TestLargeReply(t *testing.T) {
	m := load(t, open(t, wasm.Options{}), watGuest(t, "hostcall"), wasm.LoadOptions{})
	defer m.Release()
	got, err := m.Run(context.Background(), wasm.Invocation{Input: []byte(`{}`), Call: func(context.Context, string, []byte) (wasm.Reply, error) {
		return wasm.Reply{Body: make([]byte, 300<<10)}, nil
	}})
	if err != nil || !strings.Contains(string(got.Output), `{"error":{"code":"limit"`) {
		t.Errorf("Run: %s, %v, want a reply of code limit", got.Output, err)
	}
}

// TestHostPanic: a panic of the host in a host call ends the call, not the process.
func TestHostPanic(t *testing.T) {
	m := load(t, open(t, wasm.Options{}), watGuest(t, "hostcall"), wasm.LoadOptions{})
	defer m.Release()
	_, err := m.Run(context.Background(), wasm.Invocation{Input: []byte(`{}`), Call: func(context.Context, string, []byte) (wasm.Reply, error) {
		var none map[string]int
		none["x"] = 1 //nolint:staticcheck // the panic is the test
		return wasm.Reply{}, nil
	}})
	wantError(t, err, abi.Internal, "internal error of the host")
}

// TestCallErrorIsReturned: Run returns the very error of Call.
func TestCallErrorIsReturned(t *testing.T) {
	m := load(t, open(t, wasm.Options{}), watGuest(t, "hostcall"), wasm.LoadOptions{})
	defer m.Release()
	park := errors.New("parked")
	_, err := m.Run(context.Background(), wasm.Invocation{Input: []byte(`{}`), Call: func(context.Context, string, []byte) (wasm.Reply, error) {
		return wasm.Reply{}, park
	}})
	if err != park {
		t.Errorf("Run: %v, want the very error of Call", err)
	}
}

// TestTimeInHostCall: time in a host call does not count against Compute, but
// against Timeout, and ctx ends it.
func TestTimeInHostCall(t *testing.T) {
	m := load(t, open(t, wasm.Options{}), watGuest(t, "hostcall"), wasm.LoadOptions{})
	defer m.Release()
	slow := func(ctx context.Context, _ string, _ []byte) (wasm.Reply, error) {
		select {
		case <-time.After(150 * time.Millisecond):
			return wasm.Reply{Body: []byte(`{"ok":1}`)}, nil
		case <-ctx.Done():
			return wasm.Reply{}, ctx.Err()
		}
	}
	inv := wasm.Invocation{Input: []byte(`{}`), Call: slow, Compute: 100 * time.Millisecond}
	if _, err := m.Run(context.Background(), inv); err != nil {
		t.Errorf("a call longer than Compute: %v", err)
	}
	inv.Timeout = 20 * time.Millisecond
	if _, err := m.Run(context.Background(), inv); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a call longer than Timeout: %v, want what Call returned", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(20*time.Millisecond, cancel)
	inv.Timeout = 0
	if _, err := m.Run(ctx, inv); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled call: %v, want what Call returned", err)
	}
}

func TestCancel(t *testing.T) {
	m := load(t, open(t, wasm.Options{}), watGuest(t, "loop"), wasm.LoadOptions{})
	defer m.Release()
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(20*time.Millisecond, cancel)
	_, err := m.Run(ctx, wasm.Invocation{})
	wantError(t, err, abi.Cancelled, "cancelled")
	_, err = m.Run(context.Background(), wasm.Invocation{Timeout: 20 * time.Millisecond})
	wantError(t, err, abi.Timeout, "time limit")
}

// TestCollectorIsNotBlocked: a garbage collection ends while a guest computes.
// Otherwise the guest would stop every goroutine of the process.
func TestCollectorIsNotBlocked(t *testing.T) {
	h := open(t, wasm.Options{})
	for _, name := range []string{"loop", "tree"} {
		m := load(t, h, watGuest(t, name), wasm.LoadOptions{})
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() {
			_, err := m.Run(ctx, wasm.Invocation{Compute: time.Minute})
			done <- err
		}()
		time.Sleep(20 * time.Millisecond) // until the guest computes; a shorter sleep would prove less
		stdruntime.GC()
		cancel()
		wantError(t, <-done, abi.Cancelled, "cancelled")
		m.Release()
	}
}

// TestFreshInstancesKeepNothing: each call of a module that is not stateless starts
// from the same state.
func TestFreshInstancesKeepNothing(t *testing.T) {
	m := load(t, open(t, wasm.Options{}), watGuest(t, "count"), wasm.LoadOptions{Trusted: true})
	defer m.Release()
	for range 5 {
		got, err := m.Run(context.Background(), wasm.Invocation{})
		if err != nil || string(got.Output) != "11" || got.Reused {
			t.Fatalf("Run: %s, %v, reused %v, want 11 in a new instance", got.Output, err, got.Reused)
		}
	}
}

// TestGoGuest: panics, limits and the sandbox of a guest of the Go toolchain.
func TestGoGuest(t *testing.T) {
	m := load(t, open(t, wasm.Options{}), replayGuest(t), wasm.LoadOptions{})
	defer m.Release()
	run := func(input string) (wasm.Result, error) {
		return m.Run(context.Background(), wasm.Invocation{Input: []byte(input), Call: echoRequest, ClockBase: start})
	}
	result, err := run("panic")
	wantError(t, err, abi.Trap, "panic: the guest gave up")
	if !strings.Contains(result.Stderr, "goroutine") || len(result.Stderr) > 4<<10 {
		t.Errorf("Stderr has %d bytes: %s", len(result.Stderr), result.Stderr)
	}
	_, err = run("memory")
	wantError(t, err, abi.Memory, "67108864 bytes")
	_, err = run("sleep")
	wantError(t, err, abi.Timeout, "slept")
	result, err = run("world")
	if want := `{"env":0,"args":0,"root":false}`; err != nil || string(result.Output) != want {
		t.Errorf("the guest sees %s, %v, want %s", result.Output, err, want)
	}
}

// TestReplayDoesNotDiverge parks each host call in turn: it unwinds the guest and
// runs it again with the replies so far. ABI clauses A6.2 and A7.1.
func TestReplayDoesNotDiverge(t *testing.T) {
	m := load(t, open(t, wasm.Options{}), replayGuest(t), wasm.LoadOptions{})
	defer m.Release()
	park := errors.New("parked")
	parks := 0
	outputs := map[string]bool{}
	for seed := range uint64(30) {
		var requests []string
		for done := false; !done; {
			n := 0
			_, err := m.Run(context.Background(), wasm.Invocation{Seed: seed, ClockBase: start, Call: func(_ context.Context, _ string, request []byte) (wasm.Reply, error) {
				n++
				if n > len(requests) {
					requests = append(requests, string(request))
					return wasm.Reply{}, park
				}
				if requests[n-1] != string(request) {
					t.Errorf("seed %d, call %d: %s, recorded %s", seed, n, request, requests[n-1])
				}
				return wasm.Reply{Body: []byte(`{"ok":1}`), Now: start.Add(time.Duration(n) * time.Second)}, nil
			}})
			switch {
			case err == park:
				parks++
			case err != nil:
				t.Fatal(err)
			default:
				done = true
				outputs[fmt.Sprint(requests)] = true
			}
		}
		if len(requests) != 12 {
			t.Fatalf("%d requests, want 12: %s", len(requests), requests)
		}
	}
	if parks != 360 {
		t.Errorf("%d parks, want 360", parks)
	}
	if len(outputs) != 30 {
		t.Errorf("30 seeds had %d different executions", len(outputs))
	}
}
