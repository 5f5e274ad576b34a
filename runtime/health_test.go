package runtime_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// told collects the changes of health.
type told struct {
	mu   sync.Mutex
	list []runtime.Health
}

func (h *told) add(now runtime.Health) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, now)
}

func (h *told) all() []runtime.Health {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]runtime.Health(nil), h.list...)
}

const oneLook = `{"id":"look","name":"look","steps":[{"type":"call","command":"world/look","value":1}],"loop":{"type":"once"}}`

// While commits fail nothing new is taken, and says so at once; what is under
// way is held, and comes to its end when commits work again.
func TestReadOnlyWhileCommitsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		w, db := newFakeHost(), newRecordingStore()
		var changes told
		rt := open(t, w, db, runtime.Options{Observer: runtime.Observer{Health: changes.add}})
		defer rt.Close()
		def := decode(t, rt, oneLook)
		stored, err := rt.Save(ctx, def, 0)
		if err != nil {
			t.Fatal(err)
		}
		// Two steps: the first is under way when the disk fills, the second must
		// not begin before there is room.
		id := start(t, rt, `{"name":"two","safety":{"timeoutMs":60000},"steps":[
			{"type":"pause","event":"go"},{"type":"call","command":"world/act","value":1}],"loop":{"type":"once"}}`, runtime.StartOptions{})
		synctest.Wait()
		db.SetFault(errors.New("disk full"))

		// The first to write finds out; it is held and not kept waiting for ever.
		_, err = rt.Emit(ctx, sentinels.Event{Name: "go"})
		if e := abi.As(err); e == nil || e.Code != abi.Unavailable || !strings.Contains(e.Message, "held in memory") || !e.Permanent {
			t.Fatalf("the first: %v", err)
		}
		for name, op := range map[string]func() error{
			"backup": func() error { return rt.Backup(ctx, func(runtime.Snapshot) error { return nil }) },
			"start":  func() error { _, err := rt.Start(ctx, def, runtime.StartOptions{}); return err },
			"save":   func() error { _, err := rt.Save(ctx, def, stored.Revision); return err },
			"delete": func() error { return rt.Delete(ctx, "look", runtime.AnyRevision) },
			"emit":   func() error { _, err := rt.Emit(ctx, sentinels.Event{Name: "x"}); return err },
			"record": func() error {
				return rt.Documents().Update(ctx, func(tx *runtime.DocumentTx) error {
					_, err := tx.Put(ctx, "c", "i", []byte("1"), 0)
					return err
				})
			},
		} {
			began := time.Now()
			e := abi.As(op())
			if e == nil || e.Code != abi.Unavailable || !strings.Contains(e.Message, "disk full") || e.Hint == "" {
				t.Errorf("%s: %v", name, e)
			}
			if d := time.Since(began); d > 0 {
				t.Errorf("%s took %s to refuse", name, d)
			}
		}
		if _, err := rt.Definition("look"); err != nil {
			t.Errorf("reads do not go on: %v", err)
		}
		now := rt.Health()
		if now.OK || !now.ReadOnly || !strings.Contains(now.Reason, "disk full") || now.Held == 0 {
			t.Errorf("%+v", now)
		}
		time.Sleep(time.Hour) // far beyond the run's limit, which does not count this
		if len(w.made) != 0 {
			t.Error("a step began while nothing could be kept")
		}
		db.SetFault(nil)
		if res := wait(t, rt, id); res.Status != sentinels.StatusCompleted || len(w.made) != 1 {
			t.Errorf("%s, %v, %d effects", res.Status, res.Error, len(w.made))
		}
		time.Sleep(2 * time.Second)
		if now := rt.Health(); !now.OK || now.ReadOnly || now.Reason != "" || now.Held != 0 {
			t.Errorf("%+v", now)
		}
		if _, err := rt.Start(ctx, def, runtime.StartOptions{}); err != nil {
			t.Error(err)
		}
		if list := changes.all(); len(list) != 2 || !list[0].ReadOnly || !list[1].OK || !list[1].Since.After(list[0].Since) {
			t.Errorf("told %+v", list)
		}
	})
}

// A stop takes effect while nothing can be written, and says what is missing.
func TestStopWhileCommitsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newRecordingStore()
		rt := open(t, newFakeHost(), db, runtime.Options{})
		defer rt.Close()
		id := start(t, rt, `{"name":"w","steps":[{"type":"pause","event":"never"}],"loop":{"type":"once"}}`, runtime.StartOptions{})
		synctest.Wait()
		db.SetFault(errors.New("disk full"))
		err := rt.Stop(t.Context(), id)
		if e := abi.As(err); e == nil || e.Code != abi.Unavailable || !strings.Contains(e.Message, "is ended") {
			t.Errorf("%v", err)
		}
		db.SetFault(nil)
		if res := wait(t, rt, id); res.Status != sentinels.StatusStopped {
			t.Errorf("%s", res.Status)
		}
	})
}

// full is a store whose blobs find no room.
type full struct {
	*store.Memory
	mu  sync.Mutex
	err error
}

func (f *full) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *full) PutBlob(data []byte) (string, error) {
	f.mu.Lock()
	err := f.err
	f.mu.Unlock()
	if err != nil {
		return "", err
	}
	return f.Memory.PutBlob(data)
}

// A large output that finds no room is held, not turned into a failure.
func TestLargeValueWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &full{Memory: store.NewMemory()}
		rt := open(t, newFakeHost(), db, runtime.Options{})
		defer rt.Close()
		id := start(t, rt, `{"name":"big","steps":[{"type":"pause","event":"go"},
			{"type":"call","command":"world/look","value":"`+strings.Repeat("x", 100_000)+`","outputTo":"v"}],"loop":{"type":"once"}}`, runtime.StartOptions{})
		synctest.Wait()
		db.set(store.ErrNoSpace)
		if _, err := rt.Emit(t.Context(), sentinels.Event{Name: "go"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if now := rt.Health(); !now.ReadOnly || !strings.Contains(now.Reason, "large value") {
			t.Errorf("%+v", now)
		}
		db.set(nil)
		if res := wait(t, rt, id); res.Status != sentinels.StatusCompleted || len(variable(t, res, "v")) < 100_000 {
			t.Errorf("%s: %v", res.Status, res.Error)
		}
		time.Sleep(2 * time.Second)
		if now := rt.Health(); !now.OK {
			t.Errorf("%+v", now)
		}

		// Close does not wait for room.
		start(t, rt, `{"name":"big","steps":[{"type":"pause","event":"go2"},
			{"type":"call","command":"world/look","value":"`+strings.Repeat("y", 100_000)+`"}],"loop":{"type":"once"}}`, runtime.StartOptions{})
		synctest.Wait()
		db.set(store.ErrNoSpace)
		if _, err := rt.Emit(t.Context(), sentinels.Event{Name: "go2"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if err := rt.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Below the mark the runtime is read-only although commits work; it is well
// again by itself, a little above the mark.
func TestLowWater(t *testing.T) {
	dir := t.TempDir()
	disk, err := store.DiskOf(dir)
	if err != nil {
		t.Skip(err)
	}
	rt, err := runtime.Open(context.Background(), runtime.Options{Dir: dir, MinFree: disk.Free * 2})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	if now := rt.Health(); !now.ReadOnly || !strings.Contains(now.Reason, "nearly full") || now.LowBytes != disk.Free*2 || now.StoreBytes == 0 {
		t.Errorf("%+v", now)
	}
	if _, err := rt.Emit(within(t), sentinels.Event{Name: "x"}); abi.CodeOf(err) != abi.Unavailable {
		t.Errorf("%v", err)
	}
}

// Triggers are armed while the store takes no commits, else a process that starts
// on a full disk would never be ready. They fire when it does again.
func TestArmWhileCommitsFail(t *testing.T) {
	db := store.NewMemory()
	s := serving{fakeTriggers: new(fakeTriggers), w: newFakeHost()}
	s.Runtime = open(t, s.w, db, runtime.Options{Triggers: s.set()})
	s.save(t, "a", `"trigger":{"type":"test"}`)
	db.SetFault(errors.New("disk full"))
	if err := s.Arm(within(t)); err != nil {
		t.Fatalf("arm: %v", err)
	}
	db.SetFault(nil)
	until(t, "commits to work", func() bool { return s.Health().OK })
	if adm := s.fire(t, "a", 0, fired(1)); adm.Outcome != triggers.Started {
		t.Errorf("%+v", adm)
	}
}
