//go:build unix

package trash_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sentinel-runtime/sentinel/host/internal/trash"
)

// chain makes folders in each other, with a folder of mode 0 in the last one.
func chain(t *testing.T, dir, name string, levels int) {
	t.Helper()
	at, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(at) }()
	for i := range levels {
		if err := unix.Mkdirat(at, name, 0o700); err != nil {
			t.Fatalf("level %d: %v", i, err)
		}
		next, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatalf("level %d: %v", i, err)
		}
		_ = unix.Close(at)
		at = next
	}
	for _, err := range []error{unix.Mkdirat(at, "locked", 0o700), unix.Mkdirat(at, "locked/e", 0), unix.Fchmodat(at, "locked", 0, 0)} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// descriptors returns how many descriptors this process has open.
func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Skipf("the descriptors of a process cannot be listed: %v", err)
	}
	return len(list)
}

// Depth costs neither descriptors nor a path that is too long for the system.
func TestDeleteDeepFolders(t *testing.T) {
	levels := 30_000
	if testing.Short() {
		levels = 3_000
	}
	for _, tt := range []struct {
		name   string
		levels int
	}{{"d", levels}, {strings.Repeat("x", 200), 25}} {
		tree := filepath.Join(t.TempDir(), "tree")
		for _, path := range []string{"a/locked/e", "deep", "z/locked/e"} {
			if err := os.MkdirAll(filepath.Join(tree, path), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		chain(t, filepath.Join(tree, "deep"), tt.name, tt.levels)
		for _, path := range []string{"a/locked/e", "a/locked", "z/locked/e", "z/locked"} {
			if err := os.Chmod(filepath.Join(tree, path), 0); err != nil {
				t.Fatal(err)
			}
		}
		before, most, n := descriptors(t), 0, 0
		err := trash.Delete(calls{t.Context(), func() error {
			if n++; n%7 == 0 { // at every level in the end
				most = max(most, descriptors(t))
			}
			return nil
		}}, tree)
		if err != nil {
			t.Errorf("%d levels: %v", tt.levels, err)
		}
		gone(t, tree)
		if most > before+20 {
			t.Errorf("%d levels: %d open descriptors, and %d before", tt.levels, most, before)
		}
	}
}

// Every set of rights that a command may leave is one that is deleted, also that of the
// folder itself.
func TestDeleteWithoutRights(t *testing.T) {
	dir := t.TempDir()
	var locked []string
	for mode := range os.FileMode(8) {
		for inner := range os.FileMode(8) {
			path := filepath.Join(dir, "tree", fmt.Sprint(mode), fmt.Sprint(inner))
			folder(t, path)
			locked = append(locked, path)
			if err := os.Chmod(path, inner<<6); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(filepath.Join(dir, "tree", fmt.Sprint(mode)), mode<<6); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "tree"), 0); err != nil {
		t.Fatal(err)
	}
	bin := trash.Bin{Dir: filepath.Join(dir, "removed")}
	if err := bin.Remove(filepath.Join(dir, "tree")); err != nil {
		t.Errorf("%d folders: %v", len(locked), err)
	}
	bin.Close()
	gone(t, filepath.Join(dir, "tree"))
	gone(t, bin.Dir)
}

// A pipe, a socket and a device are deleted as files: none of them is opened.
func TestDeletePipes(t *testing.T) {
	tree := filepath.Join(t.TempDir(), "tree")
	folder(t, tree)
	if err := unix.Mkfifo(filepath.Join(tree, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := trash.Delete(t.Context(), tree); err != nil {
		t.Error(err)
	}
	gone(t, tree)
}

// What is mounted in a folder is another's, and is left.
func TestDeleteLeavesMounts(t *testing.T) {
	tree := filepath.Join(t.TempDir(), "tree")
	mounted := filepath.Join(tree, "b")
	for _, name := range []string{"a", "b", "c"} {
		folder(t, filepath.Join(tree, name))
	}
	mount(t, mounted)
	if err := os.WriteFile(filepath.Join(mounted, "precious"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := trash.Delete(t.Context(), tree); err == nil || !strings.Contains(err.Error(), `delete "tree/b": another file system is mounted there`) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(mounted, "precious")); err != nil {
		t.Errorf("what is mounted: %v", err)
	}
	gone(t, filepath.Join(tree, "a"))
	gone(t, filepath.Join(tree, "c"))
}

// otherUser has none of the rights of root.
const otherUser = 65534

// TestDeleteForAnotherUser repeats the tests of this package without the rights of root, for
// whom modes mean nothing, and lets another user delete a tree with files of root.
func TestDeleteForAnotherUser(t *testing.T) {
	if dir := os.Getenv("TRASH_TEST_TREE"); dir != "" {
		deleteForeign(t, dir)
		return
	}
	if os.Getuid() != 0 {
		t.Skip("only root can become another user; as this one the tests ran already")
	}
	dir, err := os.MkdirTemp("/tmp", "trash-test-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	program, tree := filepath.Join(dir, "trash.test"), filepath.Join(dir, "tree")
	if out, err := exec.Command("cp", os.Args[0], program).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	// More folders of root than are listed at one time, with long names, among those of the user.
	for i := range 1500 {
		foreign := filepath.Join(tree, "many", fmt.Sprintf("%0200d", i))
		own := filepath.Join(tree, "many", fmt.Sprintf("own%d", i))
		for _, err := range []error{os.MkdirAll(filepath.Join(foreign, "file"), 0o755), os.Mkdir(own, 0o700), os.Chown(own, otherUser, otherUser)} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, path := range []string{dir, program, tree, filepath.Join(tree, "many")} {
		if err := errors.Join(os.Chmod(path, 0o755), os.Chown(path, otherUser, otherUser)); err != nil {
			t.Fatal(err)
		}
	}
	run := func(pattern string, env ...string) string {
		t.Helper()
		args := []string{"-test.run", pattern, "-test.v"}
		if testing.Short() {
			args = append(args, "-test.short")
		}
		cmd := exec.Command(program, args...)
		cmd.Dir, cmd.Env = dir, append(append(os.Environ(), "TMPDIR="+dir, "HOME="+dir), env...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: otherUser, Gid: otherUser}}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return string(out)
	}
	if out := run("^(TestDelete(Deep|Without|Beside|Until|Leaves|Nothing|Pipes)|TestRemove|TestLeftovers|TestRetry)"); strings.Count(out, "--- PASS") < 9 {
		t.Errorf("some tests are missing:\n%s", out)
	}
	run("^TestDeleteForAnotherUser$", "TRASH_TEST_TREE="+tree)
}

// deleteForeign deletes a tree with folders of another user: they are left, and no others.
func deleteForeign(t *testing.T, tree string) {
	err := trash.Delete(t.Context(), tree)
	if !errors.Is(err, os.ErrPermission) && !errors.Is(err, syscall.ENOTEMPTY) || len(err.Error()) > 2048 || !strings.HasSuffix(err.Error(), "and 1495 more") {
		t.Errorf("got %v", err)
	}
	list, err := os.ReadDir(filepath.Join(tree, "many"))
	if err != nil || len(list) != 1500 {
		t.Errorf("%d entries are left: %v", len(list), err)
	}
	for _, e := range list {
		if strings.HasPrefix(e.Name(), "own") {
			t.Errorf("%s is left", e.Name())
		}
	}
}
