package store_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
)

const run = "0197a3c4-5b6d-7e8f-9a0b-00000000000a"

func record(seq uint64) store.Batch {
	return store.Batch{Appends: []store.Append{{Run: run, Seq: seq, Record: []byte("record")}}}
}

func wait(t testing.TB, ticket *store.Ticket) {
	t.Helper()
	if err := ticket.Wait(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func closeStore(t testing.TB, s store.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestReopen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "state")
	db := open(t, dir)
	wait(t, db.Enqueue(record(1)))
	wait(t, db.Enqueue(store.Batch{Puts: []store.Put{{Bucket: "a", Key: []byte("k"), Value: []byte("v")}}}))
	digest, err := db.PutBlob([]byte("blob"))
	if err != nil {
		t.Fatal(err)
	}
	closeStore(t, db)

	db = open(t, dir)
	defer closeStore(t, db)
	if seq, ok, err := db.LastSeq(run); seq != 1 || !ok || err != nil {
		t.Errorf("last: %d, %v, %v", seq, ok, err)
	}
	if v, ok, err := db.Get("a", []byte("k")); string(v) != "v" || !ok || err != nil {
		t.Errorf("get: %q, %v, %v", v, ok, err)
	}
	if data, err := db.Blob(digest); string(data) != "blob" || err != nil {
		t.Errorf("blob: %q, %v", data, err)
	}
	if st := db.Stats(); st.Commits != 0 || st.Batches != 0 {
		t.Errorf("opening counts: %+v", st)
	}
	wait(t, db.Enqueue(record(2)))
}

func TestPrivateFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	db := open(t, dir)
	defer closeStore(t, db)
	if _, err := db.PutBlob([]byte("blob")); err != nil {
		t.Fatal(err)
	}
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		} else {
			files++
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v", path, info.Mode().Perm(), want)
		}
		return nil
	})
	if err != nil || files != 4 {
		t.Errorf("%d files, want database, flag, format and blob: %v", files, err)
	}
}

func TestHeld(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir)
	_, err := store.Open(t.Context(), dir, store.Options{LockTimeout: time.Millisecond})
	var held *store.HeldError
	if !errors.Is(err, store.ErrHeld) || !errors.As(err, &held) || held.PID != os.Getpid() || held.Since.IsZero() {
		t.Errorf("second open: %v", err)
	}
	if _, err := store.Inspect(dir); !errors.Is(err, store.ErrHeld) {
		t.Errorf("inspect: %v", err)
	}
	closeStore(t, db)
	closeStore(t, open(t, dir))
}

func TestUnclean(t *testing.T) {
	dir := t.TempDir()
	wantClosed := func(want bool) {
		t.Helper()
		if got, err := store.WasClosed(dir); got != want || err != nil {
			t.Errorf("was closed: %v, %v, want %v", got, err, want)
		}
	}
	wantClosed(true)
	db := open(t, dir)
	if db.Unclean() {
		t.Error("a new store is unclean")
	}
	wantClosed(false)
	closeStore(t, db)
	wantClosed(true)
	if err := os.WriteFile(filepath.Join(dir, "store.open"), []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantClosed(false)
	if err := store.Verify(dir); err != nil {
		t.Errorf("verify: %v", err)
	}
	db = open(t, dir)
	if !db.Unclean() {
		t.Error("the unclean shutdown was not noticed")
	}
	closeStore(t, db)
	wantClosed(true)
}

// TestCommitWithFailedSync simulates a failed sync of the last page: the file
// has the commit, and the writer received an error.
func TestCommitWithFailedSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := open(t, t.TempDir())
		failures := 0
		db.SetAfterCommit(func() error {
			if failures++; failures <= 3 {
				return errors.New("sync: input/output error")
			}
			return nil
		})
		first := db.Enqueue(store.Batch{
			Appends: record(1).Appends,
			Puts: []store.Put{{Bucket: "a", Key: []byte("k"), Value: []byte("v"), Check: func(_ []byte, exists bool) error {
				if exists {
					return errors.New("applied twice")
				}
				return nil
			}}},
		})
		synctest.Wait()
		var stalled *store.StalledError
		if err := db.Health(); !errors.As(err, &stalled) || stalled.Failures != 1 || stalled.Queued != 1 {
			t.Errorf("health: %v", err)
		}
		select {
		case <-first.Done():
			t.Error("acknowledged without a sync")
		default:
		}
		second := db.Enqueue(record(2))
		wait(t, first)
		wait(t, second)
		if err := db.Health(); err != nil {
			t.Errorf("health: %v", err)
		}
		if st := db.Stats(); st.Commits != 2 || st.Retries != 3 || st.Batches != 2 || st.Records != 2 {
			t.Errorf("stats %+v", st)
		}
		closeStore(t, db)
	})
}

func TestDamagedBlobIsReplaced(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir)
	digest, err := db.PutBlob([]byte("blob"))
	if err != nil {
		t.Fatal(err)
	}
	closeStore(t, db)
	file := filepath.Join(dir, "blobs", digest[:2], digest[2:])
	if err := os.WriteFile(file, []byte("blub"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "blobs", "tmp", "put-1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	db = open(t, dir)
	if _, err := db.Blob(digest); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("damaged blob: %v", err)
	}
	if _, err := db.PutBlob([]byte("blob")); err != nil {
		t.Fatal(err)
	}
	if data, err := db.Blob(digest); string(data) != "blob" || err != nil {
		t.Errorf("put again: %q, %v", data, err)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "blobs", "tmp")); len(left) != 0 || err != nil {
		t.Errorf("unfinished files left: %v, %v", left, err)
	}
	// After a restart only blobs put since then are protected.
	closeStore(t, db)
	db = open(t, dir)
	defer closeStore(t, db)
	if n, _, err := db.SweepBlobs(func(string) bool { return false }); n != 1 || err != nil {
		t.Errorf("sweep: %d, %v", n, err)
	}
}
