//go:build linux || darwin

package store_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
)

// failWritesVar is the state folder that a re-executed test binary opens while
// all writes to files fail.
const failWritesVar = "STORE_TEST_NO_WRITE"

// allowWrites limits the size of files of this process. With 0 each write to a
// file fails as on a full disk, with EFBIG instead of ENOSPC.
func allowWrites(bytes uint64) error {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &l); err != nil {
		return err
	}
	l.Cur = min(bytes, l.Max)
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &l)
}

// failWritesMain is the main function of the child. It opens the store, prints
// what it finds, waits for a line and writes again.
func failWritesMain() bool {
	dir := os.Getenv(failWritesVar)
	if dir == "" {
		return false
	}
	if err := failWrites(dir); err != nil {
		fmt.Println("error", err)
	}
	return true
}

func failWrites(dir string) error {
	if err := allowWrites(0); err != nil {
		return err
	}
	db, err := store.Open(context.Background(), dir, store.Options{})
	if err != nil {
		return err
	}
	value, _, err := db.Get("a", []byte("k"))
	fmt.Printf("open unclean %t value %s %v\n", db.Unclean(), value, err)
	ticket := db.Enqueue(record(2))
	for db.Health() == nil {
		time.Sleep(time.Millisecond)
	}
	_, statErr := os.Stat(filepath.Join(dir, "store.open"))
	fmt.Printf("stalled full %t flag %t\n", store.IsFull(db.Health()), statErr == nil)
	bufio.NewScanner(os.Stdin).Scan()
	if err := allowWrites(1 << 40); err != nil {
		return err
	}
	<-ticket.Done()
	_, statErr = os.Stat(filepath.Join(dir, "store.open"))
	fmt.Printf("written %v flag %t\n", ticket.Err(), statErr == nil)
	fmt.Println("closed", db.Close())
	return nil
}

// TestOpenWithFailingWrites opens a store after a clean and after an unclean
// shutdown while all writes fail. The store opens, can be read, queues batches,
// and writes its flag file before the first commit.
func TestOpenWithFailingWrites(t *testing.T) {
	for _, unclean := range []bool{false, true} {
		t.Run(fmt.Sprintf("unclean %t", unclean), func(t *testing.T) {
			dir := t.TempDir()
			smallStore(t, dir)
			if unclean {
				writeFile(t, dir, "store.open", []byte("1 1\n"))
			}
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), failWritesVar+"="+dir)
			cmd.Stdin = strings.NewReader("\n") // the child reads this after it has seen the stall
			out, err := cmd.Output()            // stdout is a pipe, which has no limit
			want := fmt.Sprintf("open unclean %t value v <nil>\nstalled full true flag %t\nwritten <nil> flag true\nclosed <nil>\n", unclean, unclean)
			if string(out) != want || err != nil {
				t.Errorf("%v; the child printed\n%swant\n%s", err, out, want)
			}
			db := open(t, dir)
			defer closeStore(t, db)
			if seq, _, err := db.LastSeq(run); seq != 2 || err != nil || db.Unclean() {
				t.Errorf("afterwards: record %d, unclean %t, %v; want 2, closed", seq, db.Unclean(), err)
			}
		})
	}
}

// TestOpenOnFullDisk is the same on a full file system, where not even a folder
// can be created, and without the folder of blobs.
func TestOpenOnFullDisk(t *testing.T) {
	dir := smallDisk(t)
	smallStore(t, dir)
	if err := os.RemoveAll(filepath.Join(dir, "blobs")); err != nil {
		t.Fatal(err)
	}
	free := fill(t, dir)
	db := open(t, dir)
	if v, _, err := db.Get("a", []byte("k")); string(v) != "v" || err != nil {
		t.Errorf("read: %q, %v", v, err)
	}
	ticket := db.Enqueue(record(2))
	for db.Health() == nil {
		time.Sleep(time.Millisecond)
	}
	if err := db.Health(); !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, store.ErrNoSpace) {
		t.Errorf("health: %v", err)
	}
	if _, err := db.PutBlob(make([]byte, 100<<10)); !store.IsFull(err) {
		t.Errorf("put blob: %v", err)
	}
	free()
	wait(t, ticket)
	if _, err := db.PutBlob([]byte("blob")); err != nil {
		t.Errorf("put blob: %v", err)
	}
	if closed, err := store.WasClosed(dir); closed || err != nil {
		t.Errorf("a store with commits counts as closed: %v", err)
	}
	closeStore(t, db)
}

// smallStore creates a closed store with one pair and one record.
func smallStore(t *testing.T, dir string) {
	t.Helper()
	db := open(t, dir)
	b := record(1)
	b.Puts = []store.Put{{Bucket: "a", Key: []byte("k"), Value: []byte("v")}}
	wait(t, db.Enqueue(b))
	closeStore(t, db)
}

// smallDisk returns a folder on a file system of 1 MiB.
func smallDisk(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "none", dir).CombinedOutput(); err != nil {
		t.Skipf("cannot mount a small file system here: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if err := exec.Command("umount", dir).Run(); err != nil {
			t.Errorf("umount: %v", err)
		}
	})
	return dir
}

// fill uses all space of a file system, until free is called.
func fill(t *testing.T, dir string) (free func()) {
	t.Helper()
	filler := filepath.Join(dir, "filler")
	f, err := os.Create(filler)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	for size := 64 << 10; size > 0; size /= 2 {
		for err == nil {
			_, err = f.Write(make([]byte, size))
		}
		err = nil
	}
	return func() {
		t.Helper()
		if err := errors.Join(os.Remove(filler), f.Close()); err != nil { // the close frees the space
			t.Fatal(err)
		}
	}
}
