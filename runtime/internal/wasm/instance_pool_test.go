package wasm_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/subprocess"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// runReused runs the echo or hostcall guest and reports whether its instance had
// served a call before.
func runReused(t *testing.T, m *wasm.Module, inv wasm.Invocation) bool {
	t.Helper()
	if inv.Input == nil {
		inv.Input = []byte(`1`)
	}
	if inv.Call == nil {
		inv.Call = echoRequest
	}
	got, err := m.Run(context.Background(), inv)
	if err != nil {
		t.Fatal(err)
	}
	return got.Reused
}

// TestPoolOnlyWhereAllowed: only stateless modules that are trusted, or that the
// operator allowed it for, reuse instances.
func TestPoolOnlyWhereAllowed(t *testing.T) {
	h := open(t, wasm.Options{})
	for _, c := range []struct {
		guest string
		opt   wasm.LoadOptions
		want  bool
	}{
		{"echo", wasm.LoadOptions{Trusted: true}, true},
		{"echo", wasm.LoadOptions{Reuse: true}, true},
		{"echo", wasm.LoadOptions{}, false},
		{"validate", wasm.LoadOptions{Trusted: true}, false}, // not stateless
		{"validate", wasm.LoadOptions{Reuse: true}, false},
	} {
		m := load(t, h, watGuest(t, c.guest), c.opt)
		first := runReused(t, m, wasm.Invocation{})
		if second := runReused(t, m, wasm.Invocation{}); first || second != c.want {
			t.Errorf("%s %+v: reused %v, then %v, want false, then %v", c.guest, c.opt, first, second, c.want)
		}
		m.Release()
	}
}

// TestPure: a pure call gets a new instance, except of a trusted module.
func TestPure(t *testing.T) {
	h := open(t, wasm.Options{})
	for _, c := range []struct {
		opt  wasm.LoadOptions
		want bool
	}{{wasm.LoadOptions{Reuse: true}, false}, {wasm.LoadOptions{Trusted: true}, true}} {
		m := load(t, h, watGuest(t, "echo"), c.opt)
		runReused(t, m, wasm.Invocation{})
		if got := runReused(t, m, wasm.Invocation{Pure: true}); got != c.want {
			t.Errorf("%+v: a pure call reused an instance: %v, want %v", c.opt, got, c.want)
		}
		m.Release()
	}
}

// TestReuseKeepsState: a reused instance keeps its state. Otherwise
// TestFreshInstancesKeepNothing would pass without a reason.
func TestReuseKeepsState(t *testing.T) {
	m := load(t, open(t, wasm.Options{}), watGuest(t, "liar"), wasm.LoadOptions{Trusted: true})
	defer m.Release()
	for want := range 3 {
		got, err := m.Run(context.Background(), wasm.Invocation{})
		if w := fmt.Sprintf("%d%d", want+1, want+1); err != nil || string(got.Output) != w {
			t.Errorf("Run: %s, %v, want %s", got.Output, err, w)
		}
	}
}

// TestPoolDiscards: an instance is not used again after a call that failed.
func TestPoolDiscards(t *testing.T) {
	h := open(t, wasm.Options{})
	m := load(t, h, watGuest(t, "hostcall"), wasm.LoadOptions{Trusted: true})
	defer m.Release()
	fails := map[string]wasm.CallFunc{
		"park": func(context.Context, string, []byte) (wasm.Reply, error) {
			return wasm.Reply{}, errors.New("parked")
		},
		"bad output": func(context.Context, string, []byte) (wasm.Reply, error) {
			return wasm.Reply{Body: []byte("\xff")}, nil
		},
	}
	for name, call := range fails {
		for !runReused(t, m, wasm.Invocation{}) {
		}
		if _, err := m.Run(context.Background(), wasm.Invocation{Input: []byte(`1`), Call: call}); err == nil {
			t.Fatalf("%s: Run succeeded", name)
		}
		if runReused(t, m, wasm.Invocation{}) {
			t.Errorf("%s: the instance was used again", name)
		}
	}
	for !runReused(t, m, wasm.Invocation{}) {
	}
	ctx, cancel := context.WithCancel(context.Background())
	_, err := m.Run(ctx, wasm.Invocation{Input: []byte(`1`), Call: func(context.Context, string, []byte) (wasm.Reply, error) {
		cancel()
		return wasm.Reply{Body: []byte(`{}`)}, nil
	}})
	wantError(t, err, abi.Cancelled, "cancelled")
	if runReused(t, m, wasm.Invocation{}) {
		t.Error("a cancelled instance was used again")
	}
}

// TestPoolRetiresAfterCalls: an instance serves a limited number of calls.
func TestPoolRetiresAfterCalls(t *testing.T) {
	m := load(t, open(t, wasm.Options{}), watGuest(t, "echo"), wasm.LoadOptions{Trusted: true})
	defer m.Release()
	fresh := 0
	for range 2000 {
		if !runReused(t, m, wasm.Invocation{}) {
			fresh++
		}
	}
	if fresh != 2 {
		t.Errorf("2000 calls used %d instances, want 2", fresh)
	}
}

// TestIdleInstancesExpire: instances that are idle for a minute are closed. The
// child that compiles is outside the bubble's clock, the timer inside.
func TestIdleInstancesExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, err := wasm.Open(wasm.Options{Child: subprocess.Self()})
		if err != nil {
			t.Fatal(err)
		}
		m := load(t, h, watGuest(t, "echo"), wasm.LoadOptions{Trusted: true})
		runReused(t, m, wasm.Invocation{})
		if h.MemoryBytes() == 0 {
			t.Error("no instance is idle")
		}
		time.Sleep(30 * time.Second)
		runReused(t, m, wasm.Invocation{})
		time.Sleep(45 * time.Second)
		synctest.Wait()
		if h.MemoryBytes() == 0 {
			t.Error("an instance used 45 s ago was closed")
		}
		time.Sleep(80 * time.Second)
		synctest.Wait()
		if n := h.MemoryBytes(); n != 0 {
			t.Errorf("%d bytes of guest memory after two minutes, want 0", n)
		}
		m.Release()
		h.Close()
	})
}

// TestPoolMemoryLimits: a call may reuse an instance with a lower memory limit, but
// not with one beyond its address space.
func TestPoolMemoryLimits(t *testing.T) {
	m := load(t, open(t, wasm.Options{}), watGuest(t, "echo"), wasm.LoadOptions{Trusted: true})
	defer m.Release()
	runReused(t, m, wasm.Invocation{})
	if !runReused(t, m, wasm.Invocation{Limits: wasm.Limits{MemoryBytes: 1 << 20}}) {
		t.Error("a lower limit did not reuse the instance")
	}
	if runReused(t, m, wasm.Invocation{Limits: wasm.Limits{MemoryBytes: 128 << 20}}) {
		t.Error("a limit beyond the address space of the instance reused it")
	}
}

// TestDamagedCallMemory: a guest that writes to wrong addresses of its call memory
// fails, and nothing is printed to the stdout of the host, which carries results.
func TestDamagedCallMemory(t *testing.T) {
	h := open(t, wasm.Options{})
	m := load(t, h, watGuest(t, "poke"), wasm.LoadOptions{Reuse: true})
	defer m.Release()
	printed := captureStdout(t, func() {
		for at := uint64(0); at < 128; at += 4 {
			for _, v := range []uint64{0, 1, 8, 1<<64 - 1, 1<<31 - 1, 1<<32 - 1, 1 << 32, 1<<64 - 1<<32, 1 << 31} {
				input := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, at), v)
				for _, input := range [][]byte{input, []byte("again")} {
					_, err := m.Run(context.Background(), wasm.Invocation{Input: input, Compute: time.Minute}) // far beyond a run on a busy machine
					if err != nil && abi.CodeOf(err) != abi.Trap && abi.CodeOf(err) != abi.Output {
						t.Errorf("word %#x at %d: %v of code %q", v, at, err, abi.CodeOf(err))
					}
				}
			}
		}
	})
	if printed != "" {
		t.Errorf("printed to stdout: %s", printed)
	}
}

// captureStdout returns what f writes to the stdout of this process.
func captureStdout(t *testing.T, f func()) string {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	old := os.Stdout
	os.Stdout = w
	var text []byte
	var reading sync.WaitGroup
	reading.Go(func() { text, _ = io.ReadAll(r) })
	f()
	os.Stdout = old
	w.Close()
	reading.Wait()
	return string(text)
}

// runTogether makes n runs of the hostcall guest that are active at the same time,
// and returns how many of them reused an instance.
func runTogether(t *testing.T, m *wasm.Module, n int) (reused int) {
	t.Helper()
	var began, ended sync.WaitGroup
	began.Add(n)
	var mu sync.Mutex
	for range n {
		ended.Go(func() {
			arrive := sync.OnceFunc(began.Done)
			defer arrive() // a failed run must not block the others
			got, err := m.Run(context.Background(), wasm.Invocation{Input: []byte(`1`), Call: func(context.Context, string, []byte) (wasm.Reply, error) {
				arrive()
				began.Wait()
				return wasm.Reply{Body: []byte(`{"ok":1}`)}, nil
			}})
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if got.Reused {
				reused++
			}
		})
	}
	ended.Wait()
	return reused
}

// TestMaxIdleBytes: the limit holds for the idle instances of all modules, whose
// oldest are closed first, and nothing is left after Close.
func TestMaxIdleBytes(t *testing.T) {
	measured := open(t, wasm.Options{})
	load(t, measured, watGuest(t, "hostcall"), wasm.LoadOptions{Trusted: true})
	size := measured.MemoryBytes() // of one idle instance, which describe leaves
	h := open(t, wasm.Options{MaxIdleBytes: 5*size + size/2})
	one := load(t, h, watGuest(t, "hostcall"), wasm.LoadOptions{Trusted: true})
	other := load(t, h, watGuest(t, "hostcall"), wasm.LoadOptions{Reuse: true})
	runTogether(t, one, 9)
	if n := h.MemoryBytes(); n != 5*size {
		t.Errorf("%d bytes are idle after 9 runs, want 5 instances of %d", n, size)
	}
	if n := runTogether(t, one, 9); n != 5 {
		t.Errorf("%d of 9 runs reused an instance, want 5", n)
	}
	runTogether(t, other, 3)
	if n := h.MemoryBytes(); n != 5*size {
		t.Errorf("%d bytes are idle after runs of another module, want 5 instances of %d", n, size)
	}
	if n := runTogether(t, other, 3); n != 3 {
		t.Errorf("%d of 3 runs of the last used module reused an instance, want 3", n)
	}
	if n := runTogether(t, one, 5); n != 2 {
		t.Errorf("%d of 5 runs of the other module reused an instance, want 2", n)
	}
	one.Release()
	other.Release()
	if n := h.MemoryBytes(); n != 0 {
		t.Errorf("%d bytes of guest memory after Release, want 0", n)
	}
}

// TestIdleInstancesAreClosedForMemory: idle instances are closed when a call of another module
// needs their memory.
func TestIdleInstancesAreClosedForMemory(t *testing.T) {
	measured := open(t, wasm.Options{})
	load(t, measured, watGuest(t, "hostcall"), wasm.LoadOptions{Trusted: true})
	size := measured.MemoryBytes()
	h := open(t, wasm.Options{MaxResidentBytes: 10*size + 512<<10}) // two may be prewarmed, and there is some call memory
	one := load(t, h, watGuest(t, "hostcall"), wasm.LoadOptions{Trusted: true})
	other := load(t, h, watGuest(t, "hostcall"), wasm.LoadOptions{Reuse: true})
	runTogether(t, one, 6)
	runTogether(t, other, 6)
	runTogether(t, one, 6)
	one.Release()
	other.Release()
}

// TestNestedCallsOfPool: calls whose host calls call the same module again all end, though
// the outer ones return no instance before the inner ones do.
func TestNestedCallsOfPool(t *testing.T) {
	h := open(t, wasm.Options{})
	m := load(t, h, watGuest(t, "hostcall"), wasm.LoadOptions{Trusted: true})
	defer m.Release()
	const callers, depth = 8, 10
	var run func(depth int) error
	run = func(depth int) error {
		_, err := m.Run(context.Background(), wasm.Invocation{Input: []byte(`1`), ClockBase: start,
			Call: func(ctx context.Context, function string, request []byte) (wasm.Reply, error) {
				if depth > 1 {
					if err := run(depth - 1); err != nil {
						return wasm.Reply{}, err
					}
				}
				return replyOne(ctx, function, request)
			}})
		return err
	}
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			if err := run(depth); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}
