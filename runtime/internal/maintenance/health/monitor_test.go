package health_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/maintenance/health"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/maintenance"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A fake is a store and a disk as a test sets them.
type fake struct {
	mu      sync.Mutex
	failing error
	blob    error
	damaged *store.ValueError
	disk    store.Disk
	changes []maintenance.Health
	held    bool
	well    int // looks that found everything well
}

func newFake() *fake {
	return &fake{disk: store.Disk{Free: 10 << 30, Total: 100 << 30, FreeFiles: 1 << 20}}
}

func (f *fake) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fake) Stats() store.Stats { return store.Stats{Queued: 3, FileBytes: 7, Commits: 5} }

func (f *fake) PutBlob([]byte) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return "digest", f.blob
}

func (f *fake) Health() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failing
}

func (f *fake) Damaged() *store.ValueError {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.damaged
}

// monitor returns a monitor of the fake that has looked once.
func (f *fake) monitor(dir string) *health.Monitor {
	m := health.New(health.Options{
		Dir: dir, Store: f, Log: slog.New(slog.DiscardHandler),
		Changed: func(h maintenance.Health) { f.set(func() { f.changes = append(f.changes, h) }) },
		Hold:    func(hold bool) { f.set(func() { f.held = hold }) },
		Well:    func() { f.set(func() { f.well++ }) },
		Disk: func(string) (store.Disk, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			return f.disk, nil
		},
	})
	m.Look()
	return m
}

// While commits fail nothing starts, waiters are released with an error, clocks
// stand still and steps block. It ends by itself.
func TestCommitsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		m := f.monitor("")
		m.Start()
		defer m.Stop()
		db := store.NewMemory()
		defer db.Close()
		full := &store.StalledError{Since: time.Now(), Queued: 3, Err: errors.New("disk full")}
		f.set(func() { f.failing = full })
		if err := m.Writable(); abi.CodeOf(err) != abi.Unavailable || !strings.Contains(err.Error(), "disk full") {
			t.Errorf("before the next look: %v", err)
		}
		db.SetFault(full)
		ticket := db.Enqueue(store.Batch{Puts: []store.Put{{Bucket: "b", Key: []byte("k")}}})
		began := time.Now()
		err := m.Await(t.Context(), ticket)
		if e := abi.As(err); e == nil || !e.Permanent || !strings.Contains(e.Message, "held in memory") || time.Since(began) > time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		if err := m.AwaitOrStalled(t.Context(), ticket); err != nil {
			t.Errorf("a batch that no caller depends on: %v", err)
		}
		synctest.Wait()
		now := m.Health()
		if now.OK || !now.ReadOnly || !strings.Contains(now.Reason, "disk full") || strings.Contains(now.Reason, "3 batches") || now.Held != 3 || now.StoreBytes != 7 || now.Commits != 5 {
			t.Errorf("%+v", now)
		}
		if !m.Blocked() || !f.held {
			t.Errorf("blocked %t, clocks held %t", m.Blocked(), f.held)
		}
		limited, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := m.WaitWritable(limited); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a step: %v", err)
		}
		began = time.Now()
		f.set(func() { f.failing = nil })
		if err := m.WaitWritable(t.Context()); err != nil || time.Since(began) > time.Second {
			t.Errorf("a step was released after %s: %v", time.Since(began), err)
		}
		synctest.Wait()
		if now := m.Health(); !now.OK || now.Reason != "" || f.held || m.Writable() != nil {
			t.Errorf("%+v, clocks held %t", now, f.held)
		}
		db.SetFault(nil)
		if err := m.Await(t.Context(), ticket); err != nil {
			t.Errorf("the batch that was held: %v", err)
		}
		if len(f.changes) != 2 || !f.changes[0].ReadOnly || !f.changes[1].OK || !f.changes[1].Since.After(f.changes[0].Since) {
			t.Errorf("changes %+v", f.changes)
		}
	})
}

// Each reason to be read-only or unsound has a text and a hint, in this order.
func TestReasons(t *testing.T) {
	f := newFake()
	m := f.monitor("/state")
	check := func(what string, readOnly bool, reason, hint string, change func()) {
		t.Helper()
		f.set(change)
		m.Look()
		now := m.Health()
		if now.OK != (reason == "") || now.ReadOnly != readOnly || !strings.Contains(now.Reason, reason) || !strings.Contains(now.Hint, hint) || m.Blocked() != readOnly {
			t.Errorf("%s: %+v", what, now)
		}
	}
	check("well", false, "", "", func() {})
	m.SetUnsound(&abi.Error{Message: "the store is damaged", Hint: "recover"})
	check("unsound", false, "the store is damaged", "recover", func() {})
	check("no files", true, "5 more files", "delete files", func() { f.disk.FreeFiles = 5 })
	check("a full disk", true, "nearly full: 1024 KiB", "free space", func() { f.disk.Free = 1 << 20 })
	check("no permission", true, "cannot be written", "chmod", func() { f.failing = fs.ErrPermission })
	bad := &store.DamagedError{Path: "/state/store.db", Count: 1, Places: []string{"page 7 has the number 0"}}
	check("a damaged store", true, "cannot be written: the store /state/store.db is damaged: page 7", "sentinel recover", func() { f.failing = &store.StalledError{Err: bad} })
	if err := m.HeldError("the run"); !strings.Contains(err.Message, "lost") || !strings.Contains(err.Hint, "sentinel recover") || !err.Permanent {
		t.Errorf("%+v", err)
	}
	check("a full disk again", true, "nearly full", "free space", func() { f.failing = nil })
	check("unknown files", false, "the store is damaged", "recover", func() { f.disk.Free, f.disk.FreeFiles = 10<<30, -1 })
}

// A damaged value that the process has read makes it unsound for good.
func TestDamagedValue(t *testing.T) {
	f := newFake()
	m := f.monitor("")
	f.set(func() { f.damaged = &store.ValueError{} })
	m.Look()
	f.set(func() { f.damaged = nil })
	m.Look()
	if now := m.Health(); now.OK || now.ReadOnly || now.Reason == "" || m.Writable() != nil {
		t.Errorf("%+v", now)
	}
}

// The state ends a quarter above the mark, so that it does not alternate.
func TestMark(t *testing.T) {
	f := newFake()
	m := f.monitor("/state")
	const mark = 64 << 20
	for _, tt := range []struct {
		free     int64
		readOnly bool
	}{{mark, false}, {mark - 1, true}, {mark, true}, {mark + mark/4 - 1, true}, {mark + mark/4, false}, {mark, false}} {
		f.set(func() { f.disk.Free = tt.free })
		m.Look()
		if now := m.Health(); now.ReadOnly != tt.readOnly || now.LowBytes != mark || now.FreeBytes != tt.free {
			t.Errorf("%d free: %+v", tt.free, now)
		}
	}
}

// The ballast is written after some seconds, stays while the disk is only low, and
// is deleted when something is held.
func TestBallast(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.disk = store.Disk{Free: 60 << 20, Total: 64 << 20, FreeFiles: -1} // the ballast is 1 MiB
		m := f.monitor(dir)
		m.Start()
		defer m.Stop()
		check := func(what string, want bool) {
			t.Helper()
			if _, err := os.Stat(filepath.Join(dir, "ballast")); (err == nil) != want {
				t.Errorf("%s: %v", what, err)
			}
		}
		time.Sleep(3 * time.Second)
		check("a process that just started", false)
		time.Sleep(4 * time.Second)
		check("later", true)
		f.set(func() { f.disk.Free = 1000 })
		time.Sleep(2 * time.Second)
		check("a low disk", true)
		f.set(func() { f.failing = store.ErrNoSpace })
		time.Sleep(2 * time.Second)
		check("failing commits", false)
		f.set(func() { f.failing, f.disk.Free = nil, 60<<20 })
		time.Sleep(2 * time.Second)
		check("well again", true)
	})
}

// A large value waits for space, and the engine is read-only meanwhile. Another
// error, or the end of the context, ends the wait.
func TestPutBlob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		m := f.monitor("")
		m.Start()
		defer m.Stop()
		f.set(func() { f.blob = store.ErrNoSpace })
		done := make(chan error, 2)
		for range 2 {
			go func() { _, err := m.PutBlob(t.Context(), nil); done <- err }()
		}
		time.Sleep(time.Hour)
		if now := m.Health(); !now.ReadOnly || !strings.Contains(now.Reason, "large value") {
			t.Errorf("%+v", now)
		}
		f.set(func() { f.blob = nil })
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
		if now := m.Health(); !now.OK {
			t.Errorf("%+v", now)
		}
		other := errors.New("other")
		f.set(func() { f.blob = other })
		if _, err := m.PutBlob(t.Context(), nil); !errors.Is(err, other) {
			t.Errorf("another error: %v", err)
		}
		f.set(func() { f.blob = store.ErrNoSpace })
		cause := errors.New("shutting down")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(cause) })
		if _, err := m.PutBlob(ctx, nil); !errors.Is(err, cause) || !errors.Is(err, store.ErrNoSpace) {
			t.Errorf("after the end: %v", err)
		}
	})
}

type memoryUser struct {
	used, limit int64
	ended       []string
}

func (u *memoryUser) MemoryUse() (used, limit int64) { return u.used, u.limit }
func (u *memoryUser) ExceedMemory(text string) {
	u.ended = append(u.ended, text)
	u.used = 0
}

// A run above its limit ends, and no other.
func TestMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over, at := &memoryUser{used: 5 << 20, limit: 2 << 20}, &memoryUser{used: 2 << 20, limit: 2 << 20}
		m := health.New(health.Options{
			Store: newFake(), Log: slog.New(slog.DiscardHandler), Hold: func(bool) {}, Well: func() {},
			Runs: func() []health.MemoryUser { return []health.MemoryUser{over, at} },
		})
		m.Start()
		time.Sleep(5 * time.Second)
		m.Stop()
		if got := fmt.Sprint(over.ended); len(over.ended) != 1 || !strings.Contains(got, "maxMemoryMb reached: variables and processes") || !strings.Contains(got, "take 5 MiB, the limit is 2 MiB") || len(at.ended) != 0 {
			t.Errorf("%v, %v", over.ended, at.ended)
		}
	})
}

// Stop may be called before Start and twice, and nothing looks afterwards.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		m := f.monitor("")
		m.Stop()
		m.Start()
		time.Sleep(3500 * time.Millisecond)
		m.Stop()
		m.Stop()
		looks := f.well
		time.Sleep(time.Minute)
		if looks != 4 || f.well != looks {
			t.Errorf("%d looks, and %d after the stop", looks, f.well-looks)
		}
	})
}
