package checkpoint_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/sentinel-runtime/sentinel/host/checkpoint"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// exchange exchanges two paths of a folder in one step.
func (f *folder) exchange(one, other string) error {
	return unix.Renameat2(unix.AT_FDCWD, f.path(one), unix.AT_FDCWD, f.path(other), unix.RENAME_EXCHANGE)
}

// names are those in the folders of the swap tests.
var names = []string{"pre-commit", "pre-push", "x.json"}

// swapTasks are tasks whose undo changes files in the folders that the swap tests replace.
var swapTasks = map[string]struct {
	before, change func(f *folder, dir string)
	states         []string // that the undo comes to
}{
	"removed": {nil, func(f *folder, dir string) { f.removeNames(dir) }, []string{"kept", "filled", "replaced"}},
	"changed": {nil, func(f *folder, dir string) { f.putNames(dir, "of the task") }, []string{"kept", "filled", "exchanged", "replaced"}},
	"made":    {func(f *folder, dir string) { f.removeNames(dir) }, func(f *folder, dir string) { f.putNames(dir, "same") }, []string{"kept", "removing", "aside", "removed"}},
	"mode":    {nil, func(f *folder, dir string) { f.makeExecutable(dir + "/" + names[1]) }, []string{"kept"}},
	"folders": {func(f *folder, dir string) { f.put(dir+"/sub/sub/file", "same") }, func(f *folder, dir string) { f.remove(dir + "/sub") }, []string{"kept", "made"}},
}

func (f *folder) putNames(dir, text string) {
	for _, name := range names {
		f.put(dir+"/"+name, text)
	}
}

func (f *folder) removeNames(dir string) {
	for _, name := range names {
		f.remove(dir + "/" + name)
	}
}

// TestUndoFollowsNoSwappedFolder: a folder that is replaced by a link, or by another folder, while an undo
// works in it has nothing written, removed or given a mode in what has taken its place.
func TestUndoFollowsNoSwappedFolder(t *testing.T) {
	for task, c := range swapTasks {
		for _, kind := range []string{"link", "folder"} {
			for _, state := range c.states {
				t.Run(task+" "+kind+" "+state, func(t *testing.T) {
					active, swapped := false, false
					var f *folder
					f = newFolder(t, checkpoint.Options{At: func(now string) {
						if !active || swapped || now != state {
							return
						}
						swapped = true
						if err := f.exchange("w/d", "other"); err != nil {
							t.Error(err)
						}
					}})
					f.putNames("w/d", "same")
					f.putNames("steering", "same")
					if c.before != nil {
						c.before(f, "w/d")
					}
					if task == "removed" || task == "folders" { // so that a write would make one
						f.remove("steering/" + names[2])
					}
					victim := "steering"
					if kind == "link" {
						f.link("../steering", "other") // once it is at w/d
					} else {
						if err := os.Rename(f.path("steering"), f.path("other")); err != nil {
							t.Fatal(err)
						}
						victim = "other"
					}
					f.create("r", checkpoint.Begin)
					c.change(f, "w/d")
					f.create("r", checkpoint.End)
					want := f.inside(victim)
					active = true
					r := f.restore("r", false)
					if !swapped {
						t.Fatalf("the undo does not come to %q", state)
					}
					if kind == "folder" {
						victim = "w/d"
						for path, text := range want {
							delete(want, path)
							want[strings.Replace(path, "other/", "w/d/", 1)] = text
						}
					}
					if diff := cmp.Diff(want, f.inside(victim)); diff != "" {
						t.Errorf("the undo changed the other folder (-want +got):\n%s", diff)
					}
					if !slices.ContainsFunc(r.Refused, func(refused checkpoint.Conflict) bool { return strings.HasPrefix(refused.Path, "w/d/") }) && state != c.states[len(c.states)-1] {
						t.Errorf("nothing is refused: %+v", r)
					}
				})
			}
		}
	}
}

// TestUndoBesideASwapper: folders that a program exchanges with links all the time lead no undo elsewhere.
func TestUndoBesideASwapper(t *testing.T) {
	const folders = 40
	for task, c := range swapTasks {
		t.Run(task, func(t *testing.T) {
			f := newFolder(t, checkpoint.Options{})
			f.putNames("steering", "same")
			for i := range folders {
				dir := fmt.Sprint("w/d", i)
				f.putNames(dir, "same")
				if c.before != nil {
					c.before(f, dir)
				}
				f.link("../steering", fmt.Sprint("w/l", i))
			}
			f.create("r", checkpoint.Begin)
			for i := range folders {
				c.change(f, fmt.Sprint("w/d", i))
			}
			f.create("r", checkpoint.End)
			if task == "removed" || task == "folders" {
				f.removeNames("steering")
			}
			want := f.inside("steering")
			stop := make(chan struct{})
			var swapper sync.WaitGroup
			swapper.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
						_ = f.exchange(fmt.Sprint("w/d", i%folders), fmt.Sprint("w/l", i%folders))
					}
				}
			})
			for range 4 {
				if _, err := f.s.Restore(t.Context(), "", f.dir, "r", true); err != nil && abi.CodeOf(err) == "" {
					t.Error(err)
				}
			}
			close(stop)
			swapper.Wait()
			if diff := cmp.Diff(want, f.inside("steering")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestCheckpointsHaveNothingOfOutside: a folder in the workspace, or the workspace itself, that is exchanged with
// a link all the time leads no checkpoint of an agent to files outside, not even to their names.
func TestCheckpointsHaveNothingOfOutside(t *testing.T) {
	for _, at := range []string{"work/dir", "work"} {
		t.Run(at, func(t *testing.T) {
			f := newFolder(t, checkpoint.Options{})
			f.put("outside/secret", "a secret of outside")
			f.put("outside/dir/secret", "a secret of outside")
			f.put("work/file", "1")
			f.put("work/dir/file", "1")
			target := "outside"
			if at == "work/dir" {
				target = "outside/dir"
			}
			if err := os.Symlink(f.path(target), f.path("link")); err != nil {
				t.Fatal(err)
			}
			stop := make(chan struct{})
			var swapper sync.WaitGroup
			swapper.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						_ = f.exchange(at, "link")
					}
				}
			})
			for range 12 { // some are refused
				_, _ = f.s.Create(t.Context(), checkpoint.Request{Workspace: f.path("work"), By: "bot"})
			}
			close(stop)
			swapper.Wait()
			f.remove("outside")
			if info, err := os.Lstat(f.path(at)); err == nil && info.Mode()&os.ModeSymlink != 0 {
				_ = f.exchange(at, "link")
			}
			repositories, err := os.ReadDir(f.store)
			if err != nil || len(repositories) > 1 {
				t.Errorf("repositories of other folders: %v %v", repositories, err)
			}
			if _, err := f.s.Create(t.Context(), checkpoint.Request{Workspace: f.path("work"), By: "bot"}); err != nil {
				t.Fatal(err)
			}
			list, err := f.s.List(t.Context(), "bot", f.path("work"), "")
			if err != nil || len(list) == 0 {
				t.Fatalf("%v %v", list, err)
			}
			for _, c := range list {
				d, err := f.s.Diff(t.Context(), "bot", f.path("work"), c.ID, "", false)
				if err != nil {
					t.Fatal(err)
				}
				for _, file := range d.Files {
					if strings.Contains(file.Path, "secret") {
						t.Errorf("checkpoint %s has %+v", c.ID, file)
					}
				}
			}
		})
	}
}

// TestUndoKeepsCommandsAway: an undo is refused while a command that could replace folders is executed, with
// nothing changed, and otherwise none begins before the undo has ended.
func TestUndoKeepsCommandsAway(t *testing.T) {
	var held string
	busy := &abi.Error{Code: abi.Conflict, Message: "a confined command is being executed"}
	refuse := true
	opt := checkpoint.Options{}
	opt.HoldTree = func(folder string) (func(), error) {
		if refuse {
			return nil, busy
		}
		held = folder
		return func() { held = "" }, nil
	}
	var f *folder
	at := 0
	opt.At = func(string) {
		if at++; held != f.dir && !refuse {
			t.Errorf("the undo does not hold %q", f.dir)
		}
	}
	f = newFolder(t, opt)
	f.put("w/d/file", "of before")
	f.s = checkpoint.New(checkpoint.Options{Dir: f.store})
	f.create("r", checkpoint.Begin)
	f.put("w/d/file", "of the task")
	f.create("r", checkpoint.End)
	opt.Dir = f.store
	f.s = checkpoint.New(opt)
	before := f.state()
	if _, err := f.s.Restore(t.Context(), "", f.dir, "r", true); !errors.Is(err, busy) {
		t.Errorf("beside a command: %v", err)
	}
	if diff := cmp.Diff(before, f.state()); diff != "" {
		t.Errorf("a refused undo changed files:\n%s", diff)
	}
	if list, err := f.s.List(t.Context(), "", f.dir, ""); err != nil || len(list) != 2 {
		t.Errorf("a refused undo left checkpoints: %v %v", list, err)
	}
	refuse = false
	if r := f.restore("r", false); !r.Success || at == 0 || held != "" {
		t.Errorf("%+v, %d states, held %q", r, at, held)
	}
}
