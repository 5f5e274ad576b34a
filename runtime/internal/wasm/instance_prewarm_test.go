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

// ready waits until an instance is there that was made ahead, and returns its seed.
func ready(t testing.TB, m *wasm.Module) uint64 {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if seed, ok := m.Seed(); ok {
			return seed
		}
	}
	t.Fatal("no instance is made ahead")
	return 0
}

// requests runs the replay guest and returns its host calls and its output.
func requests(t *testing.T, m *wasm.Module, seed uint64) (calls []string, ahead bool) {
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

// A guest that ranges over a map, draws chance and reads the clock makes the same
// requests in an instance that was made ahead and in a fresh one with its seed,
// which is what replays it; and other requests in each attempt.
func TestAheadLikeFresh(t *testing.T) {
	dir := t.TempDir()
	m := load(t, open(t, wasm.Options{CacheDir: dir}), replayGuest(t), wasm.LoadOptions{})
	defer m.Release()
	other := load(t, open(t, wasm.Options{CacheDir: dir}), replayGuest(t), wasm.LoadOptions{}) // as after a restart
	defer other.Release()
	seen := map[string]bool{}
	for range 5 {
		seed := ready(t, m)
		first, ahead := requests(t, m, seed)
		if !ahead {
			t.Fatal("the instance was not one made ahead")
		}
		for name, module := range map[string]*wasm.Module{"fresh": m, "restarted": other} {
			again, ahead := requests(t, module, seed)
			if ahead {
				t.Errorf("%s: a seed was good twice", name)
			}
			if diff := cmp.Diff(first, again); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
		seen[fmt.Sprint(first)] = true
	}
	if len(seen) != 5 {
		t.Errorf("5 attempts made %d different runs", len(seen))
	}
}

// An instance serves one call: nothing of it is there in the next one.
func TestAheadOnce(t *testing.T) {
	m := load(t, open(t, wasm.Options{}), sin(t, "liar"), wasm.LoadOptions{})
	defer m.Release()
	for range 20 {
		got, err := m.Run(context.Background(), wasm.Invocation{Seed: ready(t, m)})
		if err != nil || string(got.Output) != "11" || got.Reused || !got.Prewarmed {
			t.Fatalf("Run: %s, %+v, %v", got.Output, got, err)
		}
	}
}

// The memory of what was made ahead is there for calls.
func TestAheadGivesWay(t *testing.T) {
	h := open(t, wasm.Options{MaxResidentBytes: 8 << 20})
	var idle []*wasm.Module
	for range 4 {
		m := load(t, h, sin(t, "echo"), wasm.LoadOptions{})
		defer m.Release()
		idle = append(idle, m)
	}
	before := h.MemoryBytes()
	if before == 0 {
		t.Fatal("nothing is made ahead, so this shows nothing")
	}
	m := load(t, h, sin(t, "hostcall"), wasm.LoadOptions{})
	defer m.Release()
	var running sync.WaitGroup
	began, release := make(chan error, 16), make(chan struct{})
	calls := 0
	for room := (8<<20 - before) / (before / int64(len(idle))); calls < int(room)+2; calls++ {
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
			t.Errorf("a call had no room beside instances that nobody waits for: %v", err)
		}
	}
	close(release)
	running.Wait()
}

// Callers at once find as many as they are, in time; all are gone with the module.
func TestAheadTogether(t *testing.T) {
	h := open(t, wasm.Options{})
	m := load(t, h, sin(t, "hostcall"), wasm.LoadOptions{})
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
		t.Errorf("%d bytes are held for a module that is gone", n)
	}
	if _, ok := m.Seed(); ok {
		t.Error("a module that is gone offers a seed")
	}
}

// What cannot be made ahead is said once and tried less and less often.
func TestAheadFails(t *testing.T) {
	var said warnings
	h := open(t, wasm.Options{Logger: slog.New(&said)})
	m, err := h.Load(context.Background(), sin(t, "moody"), wasm.LoadOptions{})
	for range 100 { // one load in two fails
		if err == nil {
			break
		}
		m, err = h.Load(context.Background(), sin(t, "moody"), wasm.LoadOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	defer m.Release()
	// Whoever asks without a pause gets what is ready, until one cannot be made.
	for deadline := time.Now().Add(20 * time.Second); said.n.Load() == 0; {
		if time.Now().After(deadline) {
			t.Fatal("nothing has failed")
		}
		m.Seed()
	}
	for deadline := time.Now().Add(200 * time.Millisecond); time.Now().Before(deadline); {
		m.Seed()
	}
	if n := said.n.Load(); n != 1 {
		t.Errorf("it was said %d times", n)
	}
}

// warnings counts what is logged.
type warnings struct{ n atomic.Int64 }

func (w *warnings) Enabled(context.Context, slog.Level) bool  { return true }
func (w *warnings) Handle(context.Context, slog.Record) error { w.n.Add(1); return nil }
func (w *warnings) WithAttrs([]slog.Attr) slog.Handler        { return w }
func (w *warnings) WithGroup(string) slog.Handler             { return w }
