//go:build unix

package checkpoint_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/checkpoint"
)

// TestFoldersVanish checks that folders which are removed, replaced and made while a
// checkpoint reads them neither end it nor change what it has of others.
func TestFoldersVanish(t *testing.T) {
	f := newFolder(t, checkpoint.Options{})
	for i := range 200 {
		f.put(fmt.Sprintf("steady/%d/file", i), "1")
	}
	stop := make(chan struct{})
	var user sync.WaitGroup
	for n := range 3 {
		user.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				// Any of these may fail, as the user's other programs do the same.
				dir := f.path(fmt.Sprintf("steady/%d/moving", (i*7+n)%200))
				switch i % 3 {
				case 0:
					_ = os.MkdirAll(dir+"/a/b", 0o755)
				case 1:
					_ = os.RemoveAll(dir)
				case 2:
					_ = os.RemoveAll(dir)
					_ = os.WriteFile(dir, []byte("in its place"), 0o644)
					_ = os.Remove(dir)
				}
			}
		})
	}
	for range 15 {
		if c := f.create("", ""); len(c.Uncovered.Unreadable) > 0 {
			t.Errorf("%+v", c.Uncovered)
		}
	}
	close(stop)
	user.Wait()
	for i := range 200 {
		f.remove(fmt.Sprintf("steady/%d/moving", i))
	}
	want := f.state()
	f.create("r1", checkpoint.Begin)
	f.remove("steady/3")
	f.put("steady/5/file", "2")
	f.create("r1", checkpoint.End)
	if r := f.restore("r1", false); !r.Success {
		t.Errorf("%+v", r)
	}
	if diff := cmp.Diff(want, f.state()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestWritesDuringAnUndo: what a user writes between the check of a path and its replacement or
// removal is at that path after the undo, or in a file that the result names, and the path is
// refused.
func TestWritesDuringAnUndo(t *testing.T) {
	const of, theirs = "r1", "of the user, meanwhile"
	inPlace := func(f *folder, name string) { f.put(name, theirs) }
	saved := func(f *folder, name string) {
		f.put(name+"~", theirs)
		if err := os.Rename(f.path(name+"~"), f.path(name)); err != nil {
			f.t.Fatal(err)
		}
	}
	for task, c := range map[string]struct {
		change func(f *folder)
		states []string // that the undo comes to
	}{
		"changed": {func(f *folder) { f.put("dir/a.txt", "of the task") }, []string{"filled", "exchanged"}},
		"removed": {func(f *folder) { f.remove("dir/a.txt") }, []string{"filled"}},
		"made":    {func(f *folder) { f.put("dir/b.txt", "of the task") }, []string{"removing", "aside"}},
		"a link":  {func(f *folder) { f.remove("dir/a.txt"); f.link("nowhere", "dir/a.txt") }, []string{"filled", "exchanged"}},
	} {
		for how, write := range map[string]func(f *folder, name string){"in place": inPlace, "by rename": saved} {
			for _, state := range c.states {
				t.Run(task+" "+how+" "+state, func(t *testing.T) {
					name, active, wrote := "dir/a.txt", false, false
					if task == "made" {
						name = "dir/b.txt"
					}
					var f *folder
					f = newFolder(t, checkpoint.Options{At: func(now string) {
						if !active || wrote || now != state {
							return
						}
						if wrote = true; task == "a link" && how == "in place" {
							f.remove(name) // a write would follow the link
						}
						write(f, name)
					}})
					f.put("dir/a.txt", "of before")
					f.put("dir/c.txt", "stays")
					f.create(of, checkpoint.Begin)
					c.change(f)
					f.create(of, checkpoint.End)
					active = true
					r := f.restore(of, false)
					if !wrote {
						t.Fatalf("the undo does not come to %q", state)
					}
					found := false
					for path, text := range f.state() {
						found = found || strings.HasPrefix(path, name) && strings.Contains(fmt.Sprint(text), theirs)
						if strings.Contains(path, "restore-") {
							t.Errorf("%q is left", path)
						}
					}
					if !found {
						t.Errorf("what the user wrote is lost: %v, %+v", f.state(), r)
					}
					if at := slices.IndexFunc(r.Refused, func(refused checkpoint.Conflict) bool { return refused.Path == name }); at < 0 && (state == "filled" || state == "removing") {
						t.Errorf("refused are %+v, want %q among them", r.Refused, name)
					}
				})
			}
		}
	}
}
