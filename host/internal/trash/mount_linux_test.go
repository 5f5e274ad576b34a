package trash_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sentinel-runtime/sentinel/host/internal/trash"
)

// mount mounts an empty file system for the time of a test.
func mount(t *testing.T, at string) {
	t.Helper()
	if err := unix.Mount("tmpfs", at, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("nothing can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(at, 0); err != nil {
			t.Error(err)
		}
	})
}

// A file that root has made immutable is left and named, and deleted by the next call after
// it may be deleted.
func TestDeleteLeavesImmutable(t *testing.T) {
	tree := filepath.Join(t.TempDir(), "tree")
	for _, name := range []string{"a", "b", "c"} {
		folder(t, filepath.Join(tree, name))
	}
	path := filepath.Join(tree, "b", "inner", "closed", "file")
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const immutable = 0x10 // FS_IMMUTABLE_FL
	if err := unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, immutable); err != nil {
		t.Skipf("no file can be made immutable here: %v", err)
	}
	defer func() { _ = unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, 0) }()
	err = trash.Delete(t.Context(), tree)
	if err == nil || err.Error() != `delete "tree/b/inner/closed/file": operation not permitted` {
		t.Errorf("got %v", err)
	}
	gone(t, filepath.Join(tree, "a"))
	gone(t, filepath.Join(tree, "c"))
	if err := unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, 0); err != nil {
		t.Fatal(err)
	}
	if err := trash.Delete(t.Context(), tree); err != nil {
		t.Error(err)
	}
	gone(t, tree)
}
