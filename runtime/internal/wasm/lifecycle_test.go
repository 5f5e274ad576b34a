package wasm_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	stdruntime "runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/subprocess"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// TestConcurrentRuns: concurrent callers of fresh and of pooled instances get
// their own outputs.
func TestConcurrentRuns(t *testing.T) {
	h := open(t, wasm.Options{})
	for _, opt := range []wasm.LoadOptions{{}, {Trusted: true}} {
		m := load(t, h, watGuest(t, "hostcall"), opt)
		var wg sync.WaitGroup
		for i := range 32 {
			wg.Go(func() {
				for j := range 20 {
					input := fmt.Sprintf(`"%d.%d"`, i, j)
					got, err := m.Run(context.Background(), wasm.Invocation{Input: []byte(input), Call: echoRequest})
					if err != nil || string(got.Output) != `{"ok":`+input+`}` {
						t.Errorf("Run %s: %s, %v", input, got.Output, err)
						return
					}
				}
			})
		}
		wg.Wait()
		m.Release()
	}
}

// TestReleaseUnderLoad: after the last reference is released, calls in flight
// succeed and later ones fail.
func TestReleaseUnderLoad(t *testing.T) {
	h := open(t, wasm.Options{})
	for range 10 {
		m := load(t, h, watGuest(t, "hostcall"), wasm.LoadOptions{Trusted: true})
		var wg sync.WaitGroup
		var served atomic.Int64
		begun := make(chan struct{}, 64)
		for range 16 {
			wg.Go(func() {
				for {
					_, err := m.Run(context.Background(), wasm.Invocation{Input: []byte(`1`), Call: echoRequest})
					select {
					case begun <- struct{}{}:
					default:
					}
					if err == nil {
						served.Add(1)
						continue
					}
					wantError(t, err, abi.Unavailable, "unloaded")
					return
				}
			})
		}
		for range 16 {
			<-begun
		}
		m.Release()
		wg.Wait()
		if served.Load() == 0 {
			t.Error("no call succeeded")
		}
		if m.Retain() {
			t.Error("Retain succeeded on a closed module")
		}
	}
	if n := h.MemoryBytes(); n != 0 {
		t.Errorf("%d bytes of guest memory, want 0", n)
	}
}

func TestCloseEndsCalls(t *testing.T) {
	h, err := wasm.Open(wasm.Options{CacheDir: sharedCache, Child: subprocess.Self()})
	if err != nil {
		t.Fatal(err)
	}
	loop := load(t, h, watGuest(t, "loop"), wasm.LoadOptions{})
	waits := load(t, h, watGuest(t, "hostcall"), wasm.LoadOptions{})
	begun := make(chan struct{})
	errs := make(chan error, 2)
	go func() {
		_, err := loop.Run(context.Background(), wasm.Invocation{})
		errs <- err
	}()
	go func() {
		_, err := waits.Run(context.Background(), wasm.Invocation{Input: []byte(`1`), Call: func(ctx context.Context, _ string, _ []byte) (wasm.Reply, error) {
			close(begun)
			<-ctx.Done()
			return wasm.Reply{}, context.Cause(ctx)
		}})
		errs <- err
	}()
	<-begun
	time.Sleep(20 * time.Millisecond)
	for range 2 {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
	for range 2 {
		if err := <-errs; err == nil {
			t.Error("a call succeeded during Close")
		}
	}
	if n := h.MemoryBytes(); n != 0 {
		t.Errorf("%d bytes of guest memory, want 0", n)
	}
	_, err = h.Load(context.Background(), watGuest(t, "echo"), wasm.LoadOptions{})
	wantError(t, err, abi.Cancelled, "closed")
	_, err = loop.Run(context.Background(), wasm.Invocation{})
	wantError(t, err, abi.Cancelled, "closed")
	loop.Release()
}

// compiledFiles returns the files of compiled code in a cache folder.
func compiledFiles(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "wazero-*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestDamagedCacheHeals: damaged code is compiled again, with one warning.
func TestDamagedCacheHeals(t *testing.T) {
	for name, damage := range map[string]func(b []byte) []byte{
		"empty":        func([]byte) []byte { return nil },
		"cut":          func(b []byte) []byte { return b[:len(b)/2] },
		"flipped bits": func(b []byte) []byte { b[len(b)/2] ^= 0x55; return b },
		"words":        func([]byte) []byte { return []byte("not machine code") },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var log bytes.Buffer
			h := open(t, wasm.Options{CacheDir: dir, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			load(t, h, watGuest(t, "echo"), wasm.LoadOptions{}).Release()
			files := compiledFiles(t, dir)
			if len(files) == 0 {
				t.Fatal("the cache is empty")
			}
			for _, f := range files {
				b, err := os.ReadFile(f)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(f, damage(b), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 {
				m := load(t, h, watGuest(t, "echo"), wasm.LoadOptions{})
				runReused(t, m, wasm.Invocation{})
				m.Release()
			}
			if n := strings.Count(log.String(), "damaged"); n != 1 {
				t.Errorf("%d warnings, want one:\n%s", n, &log)
			}
		})
	}
}

// TestPrune: Prune deletes the code of modules that were not used for a while,
// except of loaded and of named ones, and leftovers of interrupted compiles.
func TestPrune(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	h := open(t, wasm.Options{CacheDir: dir})
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the cache folder has mode %v, %v, want 0700", info.Mode(), err)
	}
	loaded := load(t, h, watGuest(t, "echo"), wasm.LoadOptions{})
	defer loaded.Release()
	kept := load(t, h, watGuest(t, "status"), wasm.LoadOptions{})
	kept.Release()
	gone := load(t, h, watGuest(t, "trap"), wasm.LoadOptions{})
	gone.Release()
	if err := os.WriteFile(filepath.Join(dir, "README"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// A use by any host counts. A temporary folder is deleted when it is too old to
	// belong to a compile.
	fresh, left := filepath.Join(dir, "new-fresh"), filepath.Join(dir, "new-left")
	for _, d := range []string{fresh, left} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	month := time.Now().Add(-30 * 24 * time.Hour)
	for _, d := range []string{left, filepath.Join(dir, loaded.Digest()), filepath.Join(dir, gone.Digest())} {
		if err := os.Chtimes(d, month, month); err != nil {
			t.Fatal(err)
		}
	}
	load(t, open(t, wasm.Options{CacheDir: dir}), watGuest(t, "trap"), wasm.LoadOptions{}).Release()
	if err := h.Prune(24 * time.Hour); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{loaded.Digest(): true, kept.Digest(): true, gone.Digest(): true, "README": true, "new-fresh": true, "new-left": false} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("after a day %s exists: %v, want %v", name, err == nil, want)
		}
	}
	if err := h.Prune(0, kept.Digest()); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{loaded.Digest(): true, kept.Digest(): true, gone.Digest(): false, "README": true} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("%s exists: %v, want %v", name, err == nil, want)
		}
	}
}

// TestResidentLimit: MaxResidentBytes holds for all instances together, and calls
// beyond it fail with a code that can be retried.
func TestResidentLimit(t *testing.T) {
	h := open(t, wasm.Options{MaxResidentBytes: 4 << 20})
	m := load(t, h, watGuest(t, "hostcall"), wasm.LoadOptions{})
	defer m.Release()
	var denied atomic.Int64
	var wg sync.WaitGroup
	release := make(chan struct{})
	began := make(chan struct{}, 8)
	for range 8 {
		wg.Go(func() {
			_, err := m.Run(context.Background(), wasm.Invocation{Input: []byte(`1`), Call: func(context.Context, string, []byte) (wasm.Reply, error) {
				began <- struct{}{}
				<-release
				return wasm.Reply{Body: []byte(`{}`)}, nil
			}})
			if err != nil {
				wantError(t, err, abi.Unavailable, "for all plugins is reached")
				denied.Add(1)
				began <- struct{}{}
			}
		})
	}
	for range 8 {
		<-began
	}
	if n := h.MemoryBytes(); n > 4<<20 {
		t.Errorf("%d bytes of guest memory, want at most 4 MiB", n)
	}
	close(release)
	wg.Wait()
	if denied.Load() == 0 || denied.Load() == 8 {
		t.Errorf("%d of 8 calls failed, want some", denied.Load())
	}
}

// TestNoLeaks: loads, failures, parks and reloads leave no goroutines and no
// memory behind.
func TestNoLeaks(t *testing.T) {
	cycle := func() {
		h, err := wasm.Open(wasm.Options{CacheDir: sharedCache, Child: subprocess.Self()})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"hostcall", "trap", "loop", "memorybomb"} {
			m := load(t, h, watGuest(t, name), wasm.LoadOptions{})
			for i := range 10 {
				m.Run(context.Background(), wasm.Invocation{Input: []byte(`1`), Compute: 5 * time.Millisecond, Call: func(context.Context, string, []byte) (wasm.Reply, error) {
					if i%2 == 0 {
						return wasm.Reply{}, errors.New("parked")
					}
					return wasm.Reply{Body: []byte(`{}`)}, nil
				}})
			}
			m.Release()
		}
		h.Load(context.Background(), watGuest(t, "unasked"), wasm.LoadOptions{})
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
	}
	cycle()
	stdruntime.GC()
	goroutines, mapped := stdruntime.NumGoroutine(), residentBytes(t)
	for range 5 {
		cycle()
	}
	stdruntime.GC()
	deadline := time.Now().Add(2 * time.Minute)
	for stdruntime.NumGoroutine() > goroutines && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	if n := stdruntime.NumGoroutine(); n > goroutines {
		t.Errorf("%d goroutines after, %d before", n, goroutines)
	}
	// A leak of guest memory would be 5 x 10 x 64 MiB.
	if n := residentBytes(t); n > mapped+64<<20 {
		t.Errorf("%d MiB resident after, %d before", n>>20, mapped>>20)
	}
}

// residentBytes returns the resident memory of this process, 0 where /proc does not
// report it.
func residentBytes(t *testing.T) int64 {
	t.Helper()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, rss int64
	if _, err := fmt.Sscan(string(b), &size, &rss); err != nil {
		t.Fatal(err)
	}
	return rss * int64(os.Getpagesize())
}
