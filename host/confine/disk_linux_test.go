package confine_test

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sentinel-runtime/sentinel/host/confine"
)

// A walk of the folders of a command that the command makes last does not keep the launcher from what the disk has lost.
func TestDiskDuringAWalk(t *testing.T) {
	dir := t.TempDir()
	if limit := confine.DiskDuringAWalk(dir, time.Second, 1<<40, 2<<40); limit != "" {
		t.Errorf("a walk of a second: %s", limit)
	}
	if limit := confine.DiskDuringAWalk(dir, time.Hour, 1<<40, 2<<40); !strings.Contains(limit, "its files") {
		t.Errorf("a walk of an hour: %q", limit)
	}
	if limit := confine.DiskDuringAWalk(dir, time.Hour, 3<<40, 2<<40); limit != "" {
		t.Errorf("a disk that has lost less than the limit: %s", limit)
	}
	if err := unix.Mount("small", dir, "tmpfs", 0, "size=100m"); err != nil {
		t.Skip("the test cannot mount a small disk: ", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	if limit := confine.DiskDuringAWalk(dir, 0, 1<<40, 1<<20); !strings.Contains(limit, "are free") {
		t.Errorf("a disk with little free space: %q", limit)
	}
}

// A command that moves folders to where a walk has not been cannot keep it from its end.
func TestMovedFoldersAreWalkedOnce(t *testing.T) {
	dir := t.TempDir()
	for i := range 60 {
		if err := os.Mkdir(filepath.Join(dir, strconv.Itoa(i)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	opened, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	slots, err := opened.Readdirnames(-1) // in the order of a walk
	opened.Close()
	if err != nil {
		t.Fatal(err)
	}
	events, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	reader := os.NewFile(uintptr(events), "inotify")
	const trees = 6
	at := map[int32]int{} // the slot of each watch
	for i := range trees {
		tree := filepath.Join(dir, slots[i], strconv.Itoa(i))
		if err := os.Mkdir(tree, 0o700); err != nil {
			t.Fatal(err)
		}
		for k := range 1000 {
			if err := os.WriteFile(filepath.Join(tree, strconv.Itoa(k)), []byte("text"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		watch, err := unix.InotifyAddWatch(events, tree, unix.IN_CLOSE_NOWRITE|unix.IN_ONLYDIR)
		if err != nil {
			t.Fatal(err)
		}
		at[int32(watch)] = i
	}
	ended := make(chan struct{})
	go func() { // each tree that was walked is moved before the walk again
		defer close(ended)
		for b := make([]byte, unix.SizeofInotifyEvent); ; {
			if _, err := reader.Read(b); err != nil {
				return
			}
			watch := int32(binary.NativeEndian.Uint32(b))
			from := at[watch]
			if to := from + trees; to < len(slots) {
				tree := strconv.Itoa(from % trees)
				_ = os.Rename(filepath.Join(dir, slots[from], tree), filepath.Join(dir, slots[to], tree)) // else it is walked once
				at[watch] = to
			}
		}
	}()
	const most = 60 + 60 + trees*1000 // with the top of a tree in each slot
	if n := confine.FilesOf(dir, math.MaxUint64); n > most {
		t.Errorf("the walk found %d files, of %d", n, most)
	}
	reader.Close()
	<-ended
	if n := confine.FilesOf(dir, 1<<10); n > 60+trees {
		t.Errorf("the walk went on to %d files after it had found enough", n)
	}
}

// A command does not use up the inodes of a disk, of which the host needs some for all that it writes.
func TestInodesAreLeft(t *testing.T) {
	needNamespaces(t)
	// The pauses let the watch look before all are used, on busy machines too.
	c := command(t, "i=0; while :; do i=$((i+1)); : >f$i; [ $((i % 1000)) -ne 0 ] || sleep 0.2; done")
	if err := unix.Mount("inodes", c.Root, "tmpfs", 0, "nr_inodes=40000"); err != nil {
		t.Skip("the test cannot mount a disk with few inodes: ", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(c.Root, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	r := execute(t, c)
	if !strings.Contains(r.Limit, "more files fit on the disk") {
		t.Errorf("%s", describe(r))
	}
	var s unix.Statfs_t
	if err := unix.Statfs(c.Root, &s); err != nil || s.Ffree == 0 {
		t.Errorf("%d inodes are free, %v", s.Ffree, err)
	}
}
