package wasm_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
)

// prewarmedSeed waits for a prewarmed instance and returns its seed.
func prewarmedSeed(t testing.TB, m *wasm.Module) uint64 {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if seed, ok := m.Seed(); ok {
			return seed
		}
	}
	t.Fatal("no instance was prewarmed")
	return 0
}

// hostCalls runs the replay guest and returns its host calls and its output.
func hostCalls(t *testing.T, m *wasm.Module, seed uint64) (calls []string, prewarmed bool) {
	t.Helper()
	now := start
	got, err := m.Run(context.Background(), wasm.Invocation{Input: []byte("world2"), Seed: seed, ClockBase: start,
		Call: func(_ context.Context, name string, request []byte) (wasm.Reply, error) {
			calls = append(calls, name+string(request))
			now = now.Add(time.Millisecond)
			return wasm.Reply{Body: []byte(`{"ok":1}`), Now: now}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	return append(calls, string(got.Output)), got.Prewarmed
}

// TestPrewarmedLikeFresh: a guest that ranges over a map, draws random numbers and
// reads the clock makes the same requests in a prewarmed instance and in a fresh one
// with the same seed, which replays it, and other requests in each attempt.
func TestPrewarmedLikeFresh(t *testing.T) {
	dir := t.TempDir()
	m := load(t, open(t, wasm.Options{CacheDir: dir}), replayGuest(t), wasm.LoadOptions{})
	defer m.Release()
	other := load(t, open(t, wasm.Options{CacheDir: dir}), replayGuest(t), wasm.LoadOptions{}) // as after a restart
	defer other.Release()
	seen := map[string]bool{}
	attempts := 5
	if testing.Short() {
		attempts = 2
	}
	for range attempts {
		seed := prewarmedSeed(t, m)
		first, prewarmed := hostCalls(t, m, seed)
		if !prewarmed {
			t.Fatal("the instance was not a prewarmed one")
		}
		for name, module := range map[string]*wasm.Module{"fresh": m, "restarted": other} {
			again, prewarmed := hostCalls(t, module, seed)
			if prewarmed {
				t.Errorf("%s: a seed found a prewarmed instance twice", name)
			}
			if diff := cmp.Diff(first, again); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
		seen[fmt.Sprint(first)] = true
	}
	if len(seen) != attempts {
		t.Errorf("%d attempts had %d different executions", attempts, len(seen))
	}
}

// TestPrewarmedServesOneCall: the next call does not see the state of the last.
func TestPrewarmedServesOneCall(t *testing.T) {
	m := load(t, open(t, wasm.Options{}), watGuest(t, "liar"), wasm.LoadOptions{})
	defer m.Release()
	for range 20 {
		got, err := m.Run(context.Background(), wasm.Invocation{Seed: prewarmedSeed(t, m)})
		if err != nil || string(got.Output) != "11" || got.Reused || !got.Prewarmed {
			t.Fatalf("Run: %s, %+v, %v", got.Output, got, err)
		}
	}
}

// TestPrewarmedIsClosedForMemory: prewarmed instances are closed when a call needs their
// memory.
func TestPrewarmedIsClosedForMemory(t *testing.T) {
	h := open(t, wasm.Options{MaxResidentBytes: 8 << 20})
	var idle []*wasm.Module
	for range 4 {
		m := load(t, h, watGuest(t, "echo"), wasm.LoadOptions{})
		defer m.Release()
		idle = append(idle, m)
	}
	before := h.MemoryBytes()
	if before == 0 {
		t.Fatal("no instance is prewarmed, so this test proves nothing")
	}
	m := load(t, h, watGuest(t, "hostcall"), wasm.LoadOptions{})
	defer m.Release()
	var running sync.WaitGroup
	began, release := make(chan error, 16), make(chan struct{})
	calls := 0
	for free := (8<<20 - before) / (before / int64(len(idle))); calls < int(free)+2; calls++ {
		running.Go(func() {
			_, err := m.Run(context.Background(), wasm.Invocation{Input: []byte(`1`), Call: func(context.Context, string, []byte) (wasm.Reply, error) {
				began <- nil
				<-release
				return wasm.Reply{Body: []byte(`{}`)}, nil
			}})
			if err != nil {
				began <- err
			}
		})
	}
	for range calls {
		if err := <-began; err != nil {
			t.Errorf("a call got no memory beside prewarmed instances: %v", err)
		}
	}
	close(release)
	running.Wait()
}

// TestPrewarmedConcurrent: each seed is offered once, to one of many concurrent
// callers, and no instance outlives its module.
func TestPrewarmedConcurrent(t *testing.T) {
	h := open(t, wasm.Options{})
	m := load(t, h, watGuest(t, "hostcall"), wasm.LoadOptions{})
	var wg sync.WaitGroup
	var mu sync.Mutex
	seeds, hits := map[uint64]int{}, 0
	for range 8 {
		wg.Go(func() {
			for range 50 {
				seed, ok := m.Seed()
				got, err := m.Run(context.Background(), wasm.Invocation{Input: []byte(`1`), Call: func(context.Context, string, []byte) (wasm.Reply, error) {
					return wasm.Reply{Body: []byte(`{"ok":1}`)}, nil
				}, Seed: seed})
				if err != nil || got.Reused || got.Prewarmed != ok {
					t.Errorf("Run: %+v, %v; a seed was offered: %v", got, err, ok)
				}
				if ok {
					mu.Lock()
					seeds[seed]++
					hits++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	if hits == 0 || len(seeds) != hits {
		t.Errorf("%d of 400 calls found an instance, with %d seeds", hits, len(seeds))
	}
	m.Release()
	if n := h.MemoryBytes(); n != 0 {
		t.Errorf("%d bytes of guest memory after Release, want 0", n)
	}
	if _, ok := m.Seed(); ok {
		t.Error("a released module offers a seed")
	}
}

// TestPrewarmBackoff: a failure to prewarm is logged once and retried with backoff.
func TestPrewarmBackoff(t *testing.T) {
	var log logCounter
	h := open(t, wasm.Options{Logger: slog.New(&log)})
	m, err := h.Load(context.Background(), watGuest(t, "moody"), wasm.LoadOptions{})
	for range 100 { // one load in two fails
		if err == nil {
			break
		}
		m, err = h.Load(context.Background(), watGuest(t, "moody"), wasm.LoadOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	defer m.Release()
	// Taking every seed makes the host prewarm until an instance fails.
	for deadline := time.Now().Add(2 * time.Minute); log.n.Load() == 0; {
		if time.Now().After(deadline) {
			t.Fatal("no instance failed")
		}
		m.Seed()
	}
	for deadline := time.Now().Add(200 * time.Millisecond); time.Now().Before(deadline); {
		m.Seed()
	}
	if n := log.n.Load(); n != 1 {
		t.Errorf("%d log lines, want 1", n)
	}
}

// logCounter is a slog handler that counts log lines.
type logCounter struct{ n atomic.Int64 }

func (w *logCounter) Enabled(context.Context, slog.Level) bool  { return true }
func (w *logCounter) Handle(context.Context, slog.Record) error { w.n.Add(1); return nil }
func (w *logCounter) WithAttrs([]slog.Attr) slog.Handler        { return w }
func (w *logCounter) WithGroup(string) slog.Handler             { return w }
