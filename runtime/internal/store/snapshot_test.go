package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
)

// A store snapshot that is taken during commits is a complete store, with a
// prefix of every journal.
func TestSnapshotWhileCommitting(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir)
	defer closeStore(t, db)
	ctx, stop := context.WithCancel(t.Context())
	var busy sync.WaitGroup
	busy.Go(func() {
		for seq := uint64(1); ctx.Err() == nil; seq++ {
			ticket := db.Enqueue(store.Batch{
				Appends: []store.Append{{Run: run, Seq: seq, Record: make([]byte, 2000)}},
				Puts:    []store.Put{{Bucket: "last", Key: []byte("k"), Value: fmt.Append(nil, seq)}},
			})
			if err := ticket.Wait(t.Context()); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 5 {
		s, err := db.Snapshot(t.Context(), store.SnapshotOptions{Keep: 3})
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(s.Path); err != nil || info.Size() != s.Bytes || info.Mode().Perm() != 0o600 {
			t.Errorf("snapshot %+v: %v, %v", s, info, err)
		}
		copied := t.TempDir()
		if err := os.Link(s.Path, filepath.Join(copied, "store.db")); err != nil {
			t.Fatal(err)
		}
		old := open(t, copied)
		value, _, err := old.Get("last", []byte("k"))
		if err != nil {
			t.Fatal(err)
		}
		last, _, err := old.LastSeq(run)
		if err != nil || string(value) != fmt.Sprint(last) && last > 0 {
			t.Errorf("journal ends at %d, its pair says %s, %v", last, value, err)
		}
		if err := gapless(old, run, last); err != nil {
			t.Error(err)
		}
		closeStore(t, old)
	}
	stop()
	busy.Wait()
	list, err := store.Snapshots(dir)
	if err != nil || len(list) != 3 || !list[0].Taken.After(list[2].Taken) || list[0].Why != "hourly" {
		t.Errorf("kept %+v, %v", list, err)
	}
}

// Hourly store snapshots do not replace those of another kind. Foreign files
// stay, and unfinished snapshots are removed.
func TestSnapshotRetention(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a[b") // an invalid glob pattern
	db := open(t, dir)
	defer closeStore(t, db)
	if _, err := db.Snapshot(t.Context(), store.SnapshotOptions{Why: "upgrade"}); err != nil {
		t.Fatal(err)
	}
	foreign, left := filepath.Join(dir, "snapshots", "notes.db"), filepath.Join(dir, "snapshots", "x.db.tmp")
	for _, path := range []string{foreign, left} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 4 {
		if _, err := db.Snapshot(t.Context(), store.SnapshotOptions{Keep: 2}); err != nil {
			t.Fatal(err)
		}
	}
	list, err := store.Snapshots(dir)
	if err != nil || len(list) != 3 || list[2].Why != "upgrade" {
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(left); err == nil {
		t.Error("the unfinished snapshot was not removed")
	}
}

func TestSnapshotNeedsSpace(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir)
	defer closeStore(t, db)
	if _, err := store.DiskOf(dir); err != nil {
		t.Skip(err)
	}
	if _, err := db.Snapshot(t.Context(), store.SnapshotOptions{MinFree: 1 << 60}); !errors.Is(err, store.ErrNoSpace) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := db.Snapshot(ctx, store.SnapshotOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if list, err := store.Snapshots(dir); len(list) > 0 || err != nil {
		t.Errorf("%v, %v", list, err)
	}
	if left, _ := os.ReadDir(filepath.Join(dir, "snapshots")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// A store snapshot is refused if the store was damaged while it was open. The
// previous one stays.
func TestSnapshotFindsDamage(t *testing.T) {
	dir, file := filledStore(t)
	db := open(t, dir)
	defer closeStore(t, db)
	if _, err := db.Snapshot(t.Context(), store.SnapshotOptions{Keep: 1}); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	page := leafOf(t, file)
	if _, err := f.WriteAt(make([]byte, 16), page); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Snapshot(t.Context(), store.SnapshotOptions{Keep: 1}); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("%v", err)
	}
	list, err := store.Snapshots(dir)
	if err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	if found, err := store.InspectFile(list[0].Path); err != nil || found.Damaged > 0 {
		t.Errorf("%+v, %v", found, err)
	}
}

// leafOf returns the offset of a page that is in use. It finds one by damaging
// the pages of a copy in turn.
func leafOf(t *testing.T, file string) int64 {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for at := int64(2 * 4096); at < int64(len(b)); at += 4096 {
		header := append([]byte(nil), b[at:at+16]...)
		clear(b[at : at+16])
		if store.WalkBytes(b).Damaged > 0 {
			return at
		}
		copy(b[at:], header)
	}
	t.Fatal("no page is in use")
	return 0
}

// Open compacts a file that is mostly empty. Its pairs do not change.
func TestCompactAtOpen(t *testing.T) {
	dir, file := filledStore(t)
	db := open(t, dir)
	for seq := range uint64(250) {
		ticket := db.Enqueue(store.Batch{Appends: []store.Append{{Run: run, Seq: seq + 1, Record: make([]byte, 20_000)}}})
		if seq%50 == 49 {
			wait(t, ticket) // otherwise the trim is in the same commit, and the file stays small
		}
	}
	wait(t, db.Enqueue(store.Batch{Trims: []store.Trim{{Run: run, From: 1, To: store.All}}}))
	wait(t, db.Enqueue(store.Batch{Puts: []store.Put{{Bucket: "b", Key: []byte("k"), Value: []byte("v")}}}))
	st := db.Stats()
	closeStore(t, db)
	if st.FreeBytes < st.FileBytes/2 || st.FileBytes < 4<<20 {
		t.Fatalf("%d of %d bytes free: too few for this test", st.FreeBytes, st.FileBytes)
	}
	before, err := store.BoltPairs(file)
	if err != nil {
		t.Fatal(err)
	}
	size := func() int64 {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	big := size()
	closeStore(t, open(t, dir)) // 64 MiB is the default
	if size() != big {
		t.Errorf("compacted below the limit")
	}
	db, err = store.Open(t.Context(), dir, store.Options{CompactAbove: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if size() >= big/2 {
		t.Errorf("%d bytes after %d", size(), big)
	}
	if _, err := store.Open(t.Context(), dir, store.Options{}); !errors.Is(err, store.ErrHeld) {
		t.Errorf("the lock is not on the copy: %v", err)
	}
	closeStore(t, db)
	after, err := store.BoltPairs(file)
	if err != nil || fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("%d pairs became %d, %v", len(before), len(after), err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.compact")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestCompact(t *testing.T) {
	dir, file := filledStore(t)
	before, err := store.BoltPairs(file)
	if err != nil {
		t.Fatal(err)
	}
	done, err := store.Compact(t.Context(), dir, store.Options{})
	if err != nil || done.After <= 0 || done.After > done.Before {
		t.Errorf("%+v, %v", done, err)
	}
	if after, err := store.BoltPairs(file); err != nil || fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("%d pairs became %d, %v", len(before), len(after), err)
	}
	db := open(t, dir)
	if _, err := store.Compact(t.Context(), dir, store.Options{}); !errors.Is(err, store.ErrHeld) {
		t.Errorf("while it is open: %v", err)
	}
	closeStore(t, db)
	if err := os.WriteFile(file, make([]byte, 8192), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Compact(t.Context(), dir, store.Options{}); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("a damaged one: %v", err)
	}
}

func TestBallast(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "ballast")
	for range 2 {
		if err := store.MakeBallast(dir, 3<<20+5); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(file); err != nil || info.Size() != 3<<20+5 || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
	}
	for _, want := range []bool{true, false} {
		if dropped, err := store.DropBallast(dir); dropped != want || err != nil {
			t.Errorf("dropped %t, %v", dropped, err)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
