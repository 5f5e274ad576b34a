package checkpoint_test

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/sentinel-runtime/sentinel/host/checkpoint"
)

// TestUndoLeavesWhatIsMountedSince: files of a folder that the user has mounted over that of a task are not
// those of the task, also where their content is the same. What is mounted all the time is restored.
func TestUndoLeavesWhatIsMountedSince(t *testing.T) {
	f := newFolder(t, checkpoint.Options{})
	mine := newFolder(t, checkpoint.Options{})
	mine.put("f", "same")
	mine.put("sub/f", "same")
	f.put("always/f", "below")
	bind(t, mine.dir, f.path("always"))
	f.put("there/f", "of before")
	f.create("r", checkpoint.Begin)
	for _, name := range []string{"there/f", "there/sub/f", "made/f", "made/sub/f"} {
		f.put(name, "same")
	}
	f.put("always/of the task", "1")
	f.create("r", checkpoint.End)
	bind(t, mine.dir, f.path("there"))
	bind(t, mine.dir, f.path("made"))
	want := mine.state()
	r := f.restore("r", true)
	if len(r.Refused) != 2 || r.Refused[0].Path != "made/" || r.Refused[1].Path != "there/" {
		t.Errorf("%+v", r)
	}
	delete(want, "of the task")
	if diff := cmp.Diff(want, mine.state()); diff != "" {
		t.Errorf("what is mounted was changed (-want +got):\n%s", diff)
	}
}

// TestUndoLeavesWhatIsMountedOverTheWorkspace: what is mounted over the workspace itself may have files with the
// names and contents of those that a task made.
func TestUndoLeavesWhatIsMountedOverTheWorkspace(t *testing.T) {
	f, mine := newFolder(t, checkpoint.Options{}), newFolder(t, checkpoint.Options{})
	f.put("before", "same")
	f.create("r", checkpoint.Begin)
	f.put("f", "same")
	f.put("d/g", "same")
	f.create("r", checkpoint.End)
	for _, name := range []string{"before", "f", "d/g"} {
		mine.put(name, "same")
	}
	want := mine.state()
	bind(t, mine.dir, f.dir)
	r := f.restore("r", true)
	if len(r.Refused) != 1 || r.Refused[0].Path != "./" {
		t.Errorf("%+v", r)
	}
	if diff := cmp.Diff(want, mine.state()); diff != "" {
		t.Errorf("what is mounted was changed (-want +got):\n%s", diff)
	}
}

// TestUndoLeavesModeOfMountedFile: a file that is mounted over one of a task is another file, whose mode stays.
func TestUndoLeavesModeOfMountedFile(t *testing.T) {
	f, mine := newFolder(t, checkpoint.Options{}), newFolder(t, checkpoint.Options{})
	f.put("f", "same")
	f.create("r", checkpoint.Begin)
	if err := os.Chmod(f.path("f"), 0o755); err != nil {
		t.Fatal(err)
	}
	f.create("r", checkpoint.End)
	mine.put("g", "same")
	if err := os.Chmod(mine.path("g"), 0o755); err != nil {
		t.Fatal(err)
	}
	bind(t, mine.path("g"), f.path("f"))
	r := f.restore("r", true)
	if len(r.Refused) != 1 || r.Refused[0].Path != "f" {
		t.Errorf("%+v", r)
	}
	if info, err := os.Stat(mine.path("g")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("%v, %v", info, err)
	}
}

// bind mounts a file or folder at another path until the test ends.
func bind(t *testing.T, from, at string) {
	t.Helper()
	if err := unix.Mount(from, at, "", unix.MS_BIND, ""); err != nil {
		t.Skipf("nothing can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(at, 0); err != nil {
			t.Error(err)
		}
	})
}
