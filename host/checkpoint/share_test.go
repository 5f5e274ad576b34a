package checkpoint_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/checkpoint"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// TestCheckpointsOfPersonsStay: the checkpoints of an agent, however many and large, in one run or in
// many workspaces, remove none of a person.
func TestCheckpointsOfPersonsStay(t *testing.T) {
	const agent = "agent:ci"
	dir := t.TempDir()
	f := newFolder(t, checkpoint.Options{Dir: dir, Keep: 8, Most: 4, Bytes: 2 << 20, FileBytes: 10 << 20})
	create := func(workspace, of, label string) error {
		_, err := f.s.Create(t.Context(), checkpoint.Request{Workspace: workspace, Of: of, Label: label, By: agent})
		return err
	}
	count := func() (persons, agents int) {
		t.Helper()
		list, err := f.s.List(t.Context(), f.dir, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range list {
			if c.By == "" {
				persons++
			} else {
				agents++
			}
		}
		return persons, agents
	}
	f.put("mine", "before")
	f.put("kept", random(50, 900<<10))
	f.create("r1", checkpoint.Begin)
	f.put("mine", "broken")
	f.create("r1", checkpoint.End)
	for i := range 7 {
		if err := create(f.dir, "", ""); err != nil {
			t.Fatal(err)
		}
		if err := create(f.dir, "r2", []string{checkpoint.Begin, checkpoint.End, ""}[i%3]); err != nil {
			t.Fatal(err)
		}
	}
	if persons, agents := count(); persons != 2 || persons+agents > 8 || agents == 0 {
		t.Errorf("after many: %d of the person, %d of the agent", persons, agents)
	}
	for i := range 6 {
		f.put("large", random(i, 900<<10))
		if err := create(f.dir, "", ""); err != nil {
			t.Fatal(err)
		}
	}
	if persons, _ := count(); persons != 2 {
		t.Errorf("after large ones: %d of the person", persons)
	}
	f.remove("kept", "large")
	f.put("huge", random(99, 1500<<10))
	if err := create(f.dir, "", ""); abi.CodeOf(err) != abi.Limit || !strings.Contains(err.Error(), "beside the checkpoints of persons") {
		t.Errorf("one that does not fit: %v", err)
	}
	f.remove("huge")
	for i := range 6 {
		other := f.path(fmt.Sprint("sub", i))
		if err := os.Mkdir(other, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := create(other, "", ""); err != nil {
			t.Fatal(err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 4 {
		t.Errorf("%d repositories, %v", len(entries), err)
	}
	r := f.restore("r1", true)
	if text, err := os.ReadFile(f.path("mine")); !r.Success || err != nil || string(text) != "before" {
		t.Errorf("the restore: %+v, %q %v", r, text, err)
	}
	// With more than half, persons lose their oldest.
	for range 9 {
		f.create("", "")
	}
	if persons, _ := count(); persons > 8 {
		t.Errorf("after many of the person: %d", persons)
	}
}
