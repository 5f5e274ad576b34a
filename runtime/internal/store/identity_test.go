package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
)

func writeFile(t testing.TB, dir, name string, content []byte) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Open refuses a missing or empty database file if other files of a store
// exist.
func TestMissingStoreIsDamage(t *testing.T) {
	withoutTables := filepath.Join(t.TempDir(), "withoutTables")
	if err := store.CreateWithoutTables(withoutTables); err != nil {
		t.Fatal(err)
	}
	noTables, err := os.ReadFile(withoutTables)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{"missing": nil, "empty": {}, "no tables": noTables, "half of a new file": noTables[:8192]}
	beside := map[string]string{
		"store.open": "store.open", "blobs": "blobs/ab/cdef", "snapshots": "snapshots/20260102T030405.000Z-hourly-0011223344556677.db", "logs": "logs/run.jsonl",
	}
	for what, content := range files {
		for name, path := range beside {
			t.Run(what+" beside "+name, func(t *testing.T) {
				dir := t.TempDir()
				writeFile(t, dir, path, []byte("1 1\n"))
				if content != nil {
					writeFile(t, dir, "store.db", content)
				}
				_, err := store.Open(t.Context(), dir, store.Options{})
				var bad *store.DamagedError
				if !errors.As(err, &bad) || what != "half of a new file" && !strings.Contains(err.Error(), name) {
					t.Fatalf("open: %v; want damage that names %s", err, name)
				}
				after, err := os.ReadFile(filepath.Join(dir, "store.db"))
				if string(after) != string(content) || content == nil && !errors.Is(err, os.ErrNotExist) {
					t.Errorf("the file was changed: %d bytes, %v", len(after), err)
				}
				if what == "no tables" {
					return // the pages of this file are sound
				}
				if found, err := store.Inspect(dir); err != nil || found.Damaged == 0 {
					t.Errorf("inspect: %+v, %v", found, err)
				}
			})
		}
		t.Run(what+" alone", func(t *testing.T) {
			dir := t.TempDir()
			if content != nil {
				writeFile(t, dir, "store.db", content)
			}
			writeFile(t, dir, "token", []byte("x")) // written before a store is created
			if found, err := store.Inspect(dir); content == nil && (err != nil || found.Damaged > 0) {
				t.Errorf("inspect: %+v, %v", found, err)
			}
			db := open(t, dir) // a first start that was interrupted
			wait(t, db.Enqueue(record(1)))
			closeStore(t, db)
		})
	}
}

// The identity of a store survives restarts, snapshots, compaction and a
// rebuild. Another store has another identity.
func TestIdentity(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir)
	id, made := db.ID(), db.Created()
	wait(t, db.Enqueue(record(1)))
	s, err := db.Snapshot(t.Context(), store.SnapshotOptions{})
	if err != nil || s.Store != id || !strings.Contains(filepath.Base(s.Path), id) {
		t.Errorf("snapshot %+v, %v; want id %s in its name", s, err, id)
	}
	if found, err := store.InspectFile(s.Path); err != nil || found.Store != id {
		t.Errorf("in the snapshot: %+v, %v", found, err)
	}
	closeStore(t, db)
	if _, err := store.Compact(t.Context(), dir, store.Options{}); err != nil {
		t.Fatal(err)
	}
	again := t.TempDir()
	keep := func(_ string, have []store.JournalRecord, _ bool, base []store.JournalRecord) []store.JournalRecord {
		return append(have, base...)
	}
	for name, o := range map[string]store.RebuildOptions{
		"itself": {Damaged: filepath.Join(dir, "store.db"), Choose: keep}, "its snapshot": {Base: s.Path, Choose: keep},
	} {
		if _, err := store.Rebuild(t.Context(), filepath.Join(again, "store.db"), o); err != nil {
			t.Fatal(err)
		}
		db = open(t, again)
		if db.ID() != id || !db.Created().Equal(made.Truncate(1e9)) {
			t.Errorf("rebuilt of %s: id %s made %s, want %s made %s", name, db.ID(), db.Created(), id, made)
		}
		closeStore(t, db)
		if err := os.RemoveAll(again); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(again, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	db = open(t, dir)
	if db.ID() != id {
		t.Errorf("id %s after a compaction, want %s", db.ID(), id)
	}
	closeStore(t, db)
	other := open(t, t.TempDir())
	if other.ID() == id {
		t.Error("two stores have one id")
	}
	closeStore(t, other)
}

// A new store does not remove store snapshots of an older one.
func TestSnapshotKeepsOtherStores(t *testing.T) {
	dir := t.TempDir()
	older := open(t, dir)
	var kept []string
	for range 2 {
		s, err := older.Snapshot(t.Context(), store.SnapshotOptions{Keep: 2})
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, s.Path)
	}
	closeStore(t, older)
	young := t.TempDir()
	closeStore(t, open(t, young))
	if err := os.Rename(filepath.Join(young, "store.db"), filepath.Join(dir, "store.db")); err != nil {
		t.Fatal(err)
	}
	younger := open(t, dir)
	defer closeStore(t, younger)
	for range 4 {
		if _, err := younger.Snapshot(t.Context(), store.SnapshotOptions{Keep: 2}); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range kept {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("a snapshot of the older store: %v", err)
		}
	}
	list, err := store.Snapshots(dir)
	if err != nil || len(list) != 4 || list[0].Store != younger.ID() || list[3].Store != older.ID() {
		t.Errorf("%+v, %v; want two of each", list, err)
	}
}
