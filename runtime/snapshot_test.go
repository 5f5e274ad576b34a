package runtime_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Snapshots are taken by the hour, of what has changed, and three are kept.
func TestHourlySnapshots(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		rt, err := runtime.Open(context.Background(), runtime.Options{Dir: dir, MinFree: -1})
		if err != nil {
			t.Fatal(err)
		}
		defer rt.Close()
		count := func() int {
			list, err := runtime.Snapshots(dir)
			if err != nil {
				t.Fatal(err)
			}
			return len(list)
		}
		change := func() {
			if _, err := rt.Emit(context.Background(), sentinels.Event{Name: "x"}); err != nil {
				t.Fatal(err)
			}
		}
		change()
		time.Sleep(59 * time.Minute)
		if n := count(); n != 0 {
			t.Errorf("%d after less than an hour", n)
		}
		time.Sleep(3 * time.Minute)
		if n := count(); n != 1 {
			t.Errorf("%d after an hour, want 1", n)
		}
		if rt.Health().Snapshot.IsZero() {
			t.Error("health does not know the snapshot")
		}
		time.Sleep(5 * time.Hour)
		if n := count(); n != 1 {
			t.Errorf("%d although nothing changed", n)
		}
		for range 5 {
			change()
			time.Sleep(61 * time.Minute)
		}
		if n := count(); n != 3 {
			t.Errorf("%d kept, want 3", n)
		}
	})
}

// A process that lives for a second takes the snapshot that is due when it
// closes; one without a change takes none.
func TestSnapshotAtClose(t *testing.T) {
	dir := t.TempDir()
	session := func(every time.Duration, emit bool) int {
		t.Helper()
		rt, err := runtime.Open(context.Background(), runtime.Options{Dir: dir, SnapshotEvery: every})
		if err != nil {
			t.Fatal(err)
		}
		if emit {
			if _, err := rt.Emit(within(t), sentinels.Event{Name: "x"}); err != nil {
				t.Fatal(err)
			}
		}
		if err := rt.Close(); err != nil {
			t.Fatal(err)
		}
		list, err := runtime.Snapshots(dir)
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	if n := session(0, true); n != 0 {
		t.Errorf("%d of a new store", n)
	}
	if n := session(time.Nanosecond, false); n != 0 {
		t.Errorf("%d without a change", n)
	}
	if n := session(-1, true); n != 0 {
		t.Errorf("%d although there are to be none", n)
	}
	if n := session(time.Millisecond, true); n == 0 {
		t.Error("none although one is due")
	}
}

// A snapshot can be had at any time, for a reason; a store that turns out
// damaged makes the runtime unwell and takes no good snapshot with it.
func TestSnapshotNow(t *testing.T) {
	dir := keepState(t, 200)
	rt, err := runtime.Open(context.Background(), runtime.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	s, err := rt.Snapshot(within(t), "upgrade")
	if err != nil || s.Why != "upgrade" {
		t.Fatalf("%+v, %v", s, err)
	}
	if _, err := rt.Snapshot(within(t), "../x"); abi.CodeOf(err) != abi.BadFields {
		t.Errorf("%v", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "store.db"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// The numbers of pages that hold documents only: the process itself never
	// looks at those pages here.
	size := s.Bytes
	for page := int64(6); page < size/4096; page += 3 {
		if _, err := f.WriteAt([]byte{0xee}, page*4096); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := rt.Snapshot(within(t), "upgrade"); !errors.Is(err, runtime.ErrDamaged) || abi.As(err).Hint == "" {
		t.Errorf("%v", err)
	}
	if h := rt.Health(); h.OK || h.ReadOnly || h.Hint == "" {
		t.Errorf("%+v", h)
	}
	memory, err := runtime.Open(context.Background(), runtime.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	if _, err := memory.Snapshot(within(t), "x"); abi.CodeOf(err) != abi.Unavailable {
		t.Errorf("%v", err)
	}
}

// The snapshot of a backup whose process ended before it is removed at the next start, and is not taken
// for one by the hour.
func TestSnapshotOfInterruptedBackup(t *testing.T) {
	dir := t.TempDir()
	for _, why := range []string{"backup", "hourly"} {
		rt, err := runtime.Open(t.Context(), runtime.Options{Dir: dir, MinFree: -1, SnapshotEvery: -1})
		if err != nil {
			t.Fatal(err)
		}
		list, err := runtime.Snapshots(dir)
		if err != nil || len(list) != 0 || !rt.Health().Snapshot.IsZero() {
			t.Errorf("before the snapshot %q: %v, newest %v, %v", why, list, rt.Health().Snapshot, err)
		}
		if _, err := rt.Snapshot(t.Context(), why); err != nil {
			t.Fatal(err)
		}
		if err := rt.Close(); err != nil {
			t.Fatal(err)
		}
	}
	rt, err := runtime.Open(t.Context(), runtime.Options{Dir: dir, MinFree: -1, SnapshotEvery: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	if list, err := runtime.Snapshots(dir); err != nil || len(list) != 1 || list[0].Why != "hourly" {
		t.Errorf("the snapshots are %v, %v", list, err)
	}
}
