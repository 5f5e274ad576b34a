package checkpoint_test

import (
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
	mount := func(at string) {
		if err := unix.Mount(mine.dir, f.path(at), "", unix.MS_BIND, ""); err != nil {
			t.Skipf("nothing can be mounted here: %v", err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(f.path(at), 0); err != nil {
				t.Error(err)
			}
		})
	}
	mine.put("f", "same")
	mine.put("sub/f", "same")
	f.put("always/f", "below")
	mount("always")
	f.put("there/f", "of before")
	f.create("r", checkpoint.Begin)
	for _, name := range []string{"there/f", "there/sub/f", "made/f", "made/sub/f"} {
		f.put(name, "same")
	}
	f.put("always/of the task", "1")
	f.create("r", checkpoint.End)
	mount("there")
	mount("made")
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
