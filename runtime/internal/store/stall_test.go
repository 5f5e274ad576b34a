package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
)

func TestStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := store.NewMemory()
		full := errors.New("disk full")
		m.SetFault(full)
		first := m.Enqueue(record(1))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := first.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("wait: %v", err)
		}
		bad := m.Enqueue(record(7))
		second := m.Enqueue(record(2))
		var stalled *store.StalledError
		if err := m.Health(); !errors.As(err, &stalled) || !errors.Is(err, full) || stalled.Queued != 3 || stalled.Failures < 10 {
			t.Errorf("health: %v", err)
		}
		if _, _, err := m.SweepBlobs(func(string) bool { return false }); !errors.Is(err, full) {
			t.Errorf("sweep while commits stall: %v", err)
		}
		if st := m.Stats(); st.Commits != 0 || st.Batches != 0 || st.Retries < 10 {
			t.Errorf("stats %+v", st)
		}
		m.SetFault(nil)
		wait(t, first)
		wait(t, second)
		if err := bad.Err(); !errors.Is(err, store.ErrSequence) {
			t.Errorf("refused batch: %v", err)
		}
		if err := m.Health(); err != nil {
			t.Errorf("health: %v", err)
		}
		closeStore(t, m)
	})
}

func TestCloseWhileStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		db := open(t, dir)
		wait(t, db.Enqueue(record(1)))
		fault := errors.New("disk full")
		db.SetAfterCommit(func() error { return fault })
		first, second := db.Enqueue(record(2)), db.Enqueue(record(3))
		begin := time.Now()
		if err := db.Close(); !errors.Is(err, fault) {
			t.Errorf("close: %v", err)
		}
		if d := time.Since(begin); d < 2*time.Second || d > 3*time.Second {
			t.Errorf("gave up after %v", d)
		}
		for _, ticket := range []*store.Ticket{first, second} {
			if err := ticket.Wait(t.Context()); !errors.Is(err, store.ErrClosed) || !errors.Is(err, fault) {
				t.Errorf("wait: %v", err)
			}
		}
		if closed, _ := store.WasClosed(dir); closed {
			t.Error("the store counts as closed although batches were given up")
		}
	})
}

// TestDiskFull fills a file system of 1 MB, frees space and expects that the
// queued batches are committed.
func TestDiskFull(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=1m", "none", dir).CombinedOutput(); err != nil {
		t.Skipf("cannot mount a small file system here: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if err := exec.Command("umount", dir).Run(); err != nil {
			t.Errorf("umount: %v", err)
		}
	})
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 500<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	fillUntilStalled(t, dir, syscall.ENOSPC, func(db *store.DB) {
		if _, err := db.PutBlob(make([]byte, 600<<10)); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("put blob: %v", err)
		}
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
	})
}

// TestMaxBytes reaches the cap and expects all acknowledged records after the
// store is opened with a larger cap.
func TestMaxBytes(t *testing.T) {
	dir := t.TempDir()
	db, err := store.Open(t.Context(), dir, store.Options{MaxBytes: 1 << 20, CloseGrace: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	waiting, seq := appendUntilStalled(t, db)
	if err := db.Close(); err == nil {
		t.Error("close returned no error for batches that it gave up")
	}
	if err := waiting.Err(); !errors.Is(err, store.ErrClosed) {
		t.Errorf("queued batch: %v", err)
	}
	db = open(t, dir)
	defer closeStore(t, db)
	if err := gapless(db, run, seq-1); err != nil {
		t.Error(err)
	}
}

// appendUntilStalled appends records of 8 KB until commits fail. It returns the
// ticket of the last one.
func appendUntilStalled(t *testing.T, db *store.DB) (waiting *store.Ticket, seq uint64) {
	for waiting == nil {
		seq++
		if seq > 1000 {
			t.Fatal("never full")
		}
		ticket := db.Enqueue(store.Batch{Appends: []store.Append{{Run: run, Seq: seq, Record: make([]byte, 8<<10)}}})
		select {
		case <-ticket.Done():
			if err := ticket.Err(); err != nil {
				t.Fatal(err)
			}
		case <-stalledOrDone(db, ticket):
			if db.Health() != nil {
				waiting = ticket
			}
		}
	}
	return waiting, seq
}

// fillUntilStalled appends until commits fail, calls free and checks that
// nothing is lost or repeated, also after reopening.
func fillUntilStalled(t *testing.T, dir string, cause error, free func(*store.DB)) {
	db := open(t, dir)
	waiting, seq := appendUntilStalled(t, db)
	if err := db.Health(); !errors.Is(err, cause) {
		t.Errorf("health: %v", err)
	}
	if last, _, err := db.LastSeq(run); last != seq-1 || err != nil {
		t.Errorf("while full: %d records readable, want %d: %v", last, seq-1, err)
	}
	free(db)
	wait(t, waiting)
	wait(t, db.Enqueue(store.Batch{Appends: []store.Append{{Run: run, Seq: seq + 1}}}))
	if err := db.Health(); err != nil {
		t.Errorf("health: %v", err)
	}
	closeStore(t, db)
	if err := store.Verify(dir); err != nil {
		t.Error(err)
	}
	db = open(t, dir)
	defer closeStore(t, db)
	if err := gapless(db, run, seq+1); err != nil {
		t.Error(err)
	}
}

// stalledOrDone returns a channel that is closed when the ticket is done or the
// store stalls.
func stalledOrDone(db *store.DB, ticket *store.Ticket) <-chan struct{} {
	c := make(chan struct{})
	go func() {
		defer close(c)
		for db.Health() == nil {
			select {
			case <-ticket.Done():
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	return c
}

// gapless checks that the journal has exactly the records 1 to want.
func gapless(s store.Store, run string, want uint64) error {
	var last uint64
	err := s.Journal(run, 0, func(seq uint64, _ []byte) error {
		if seq != last+1 {
			return fmt.Errorf("record %d follows %d", seq, last)
		}
		last = seq
		return nil
	})
	if err == nil && last != want {
		err = fmt.Errorf("journal ends at %d, want %d", last, want)
	}
	return err
}
