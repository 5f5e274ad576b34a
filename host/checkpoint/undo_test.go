package checkpoint_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/checkpoint"
)

// task executes a task between two checkpoints, reverts it, and checks that all files are as
// before.
func (f *folder) task(of string, task func()) checkpoint.Restored {
	f.t.Helper()
	want := f.state()
	f.create(of, checkpoint.Begin)
	task()
	changed := f.state()
	f.create(of, checkpoint.End)
	r := f.restore(of, false)
	if !r.Success || len(r.Conflicts)+len(r.Refused) > 0 {
		f.t.Fatalf("%+v", r)
	}
	if diff := cmp.Diff(want, f.state()); diff != "" {
		f.t.Errorf("after the undo (-want +got):\n%s", diff)
	}
	if r.Undo != "" {
		if back := f.restore(r.Undo, false); !back.Success || len(back.Refused) > 0 {
			f.t.Errorf("%+v", back)
		}
	}
	if diff := cmp.Diff(changed, f.state()); diff != "" {
		f.t.Errorf("after the undo of the undo (-want +got):\n%s", diff)
	}
	return r
}

func (f *folder) ignoring() {
	f.git("init")
	f.put(".gitignore", "*.db\nnode_modules/\n.env\n")
	f.put(".git/info/exclude", "secret\n")
	for _, name := range []string{"a.txt", "data.db", "node_modules/x/index.js", "node_modules/y.js", ".env", "secret"} {
		f.put(name, "of the user: "+name+"\n")
	}
}

// TestRulesOfTheBegin checks that a task which changes what git ignores, or of which size a
// file is, has no file deleted that it did not touch, and reports none.
func TestRulesOfTheBegin(t *testing.T) {
	for name, c := range map[string]struct {
		task func(*folder)
		want []string
	}{
		"a line of .gitignore is removed":    {func(f *folder) { f.put(".gitignore", "*.db\n") }, []string{"modified .gitignore"}},
		".gitignore is removed":              {func(f *folder) { f.remove(".gitignore") }, []string{"deleted .gitignore"}},
		"info/exclude is emptied":            {func(f *folder) { f.put(".git/info/exclude", "") }, []string{"modified .git/"}},
		"an ignored file is added":           {func(f *folder) { f.git("add", "-f", ".env") }, []string{}},
		"a file is ignored":                  {func(f *folder) { f.put(".gitignore", "*.db\nnode_modules/\n.env\na.txt\n") }, []string{"modified .gitignore"}},
		"a repository is made":               {func(f *folder) { f.remove(".git"); f.git("init") }, []string{"modified .git/"}},
		"a nested repository loses its .git": {func(f *folder) { f.remove("lib/.git") }, []string{"deleted lib/.git/"}},
		"a file shrinks below the limit":     {func(f *folder) { f.put("large", "small\n") }, []string{"modified large"}},
		"a file grows above the limit":       {func(f *folder) { f.put("a.txt", strings.Repeat("x\n", 3000)) }, []string{"modified a.txt"}},
		"ignored files change": {func(f *folder) {
			f.put(".env", "changed\n")
			f.remove("data.db", "node_modules/x")
			f.put("node_modules/new.js", "new\n")
		}, []string{"modified .env", "deleted data.db", "added node_modules/new.js", "deleted node_modules/x/"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFolder(t, checkpoint.Options{FileBytes: 4000})
			f.ignoring()
			f.put("large", strings.Repeat("l\n", 4000))
			lib := *f
			lib.dir = f.path("lib")
			lib.put("lib.go", "package lib\n")
			lib.git("init")
			before := f.state()
			f.create("r1", checkpoint.Begin)
			c.task(f)
			after := f.state()
			f.create("r1", checkpoint.End)
			d, err := f.s.DiffOf(t.Context(), "", f.dir, "r1", false)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, paths(d.Files)); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			r := f.restore("r1", false)
			if !r.Success {
				t.Errorf("%+v", r)
			}
			for _, c := range d.Files {
				if c.Left != "" { // named as not restored
					before[c.Path] = after[c.Path]
				}
			}
			delete(before, "lib/.git/")
			delete(before, ".git/")
			if diff := cmp.Diff(before, f.state()); diff != "" {
				t.Errorf("after the undo (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNewRules checks that a folder which becomes a repository keeps all files.
func TestNewRules(t *testing.T) {
	f := newFolder(t, checkpoint.Options{})
	f.put("a.txt", "a\n")
	f.put("notes", "n\n")
	r := f.task("r1", func() {
		f.git("init")
		f.put(".gitignore", "notes\n")
		f.put("a.txt", "b\n")
	})
	if diff := cmp.Diff([]string{"added .git/", "deleted .gitignore", "modified a.txt"}, paths(r.Files)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestStates checks that modes, empty folders, links and special bits come back.
func TestStates(t *testing.T) {
	f := newFolder(t, checkpoint.Options{})
	f.put("private", "1")
	f.put("shared/tool", "#!/bin/sh\n")
	f.put("locked/file", "1")
	f.put("sealed/file", "1")
	if err := errors.Join(
		os.Chmod(f.path("private"), 0o600), os.MkdirAll(f.path("logs/empty"), 0o700), os.Chmod(f.path("shared/tool"), 0o755|os.ModeSetgid),
		os.Chmod(f.path("shared"), 0o775|os.ModeSetgid), os.Chmod(f.path("locked"), 0o555),
	); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(f.path("locked"), 0o755) })
	f.task("r1", func() {
		f.remove("private", "logs", "shared")
		f.put("new/a/b", "1")
		f.put("sealed/file", "2")
		if err := errors.Join(
			os.Mkdir(f.path("hollow"), 0o711), os.Chmod(f.path("locked"), 0o755), os.WriteFile(f.path("locked/file"), []byte("2"), 0o644), os.Chmod(f.path("locked"), 0o555),
			os.Chmod(f.path("sealed"), 0o500), os.Chmod(f.path("new/a"), 0o500),
		); err != nil {
			t.Fatal(err)
		}
	})
	_ = errors.Join(os.Chmod(f.path("new/a"), 0o700), os.Chmod(f.path("sealed"), 0o700)) // so that they can be removed
}

// TestOwners checks that owners come back, and set-id bits with them.
func TestOwners(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root gives files away")
	}
	f := newFolder(t, checkpoint.Options{})
	for _, name := range []string{"rewritten", "deleted", "given", "dir/file"} {
		f.put(name, "1")
		if err := errors.Join(os.Chown(f.path(name), 1234, 4321), os.Chmod(f.path(name), 0o755|os.ModeSetgid)); err != nil {
			t.Fatal(err)
		}
	}
	f.link("target", "link")
	if err := errors.Join(os.Lchown(f.path("link"), 1234, 4321), os.Chown(f.path("dir"), 1234, 4321), os.Chmod(f.path("dir"), 0o775|os.ModeSetgid)); err != nil {
		t.Fatal(err)
	}
	f.task("r1", func() {
		f.remove("deleted", "dir", "link")
		if err := errors.Join(os.WriteFile(f.path("rewritten"), []byte("2"), 0o644), os.Chown(f.path("given"), 0, 0)); err != nil {
			t.Fatal(err)
		}
	})
}

// TestUnkept checks that what changed without its content of before is named before and after
// the undo, and that the rest is restored.
func TestUnkept(t *testing.T) {
	f := newFolder(t, checkpoint.Options{FileBytes: 100})
	f.put("large", random(1, 200))
	f.put("gone", random(2, 200))
	f.put("a.txt", "1\n")
	f.create("r1", checkpoint.Begin)
	f.put("large", random(3, 200))
	f.put("a.txt", "2\n")
	f.remove("gone")
	f.put("new", random(4, 300))
	f.create("r1", checkpoint.End)
	d, err := f.s.DiffOf(t.Context(), "", f.dir, "r1", false)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"modified a.txt", "deleted gone", "modified large", "added new"}
	if diff := cmp.Diff(want, paths(d.Files)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	left := func(list []checkpoint.Change) (names []string) {
		for _, c := range list {
			if c.Left != "" {
				names = append(names, c.Path)
			}
		}
		slices.Sort(names)
		return names
	}
	r := f.restore("r1", false)
	for _, list := range [][]checkpoint.Change{d.Files, r.Files} {
		if diff := cmp.Diff([]string{"gone", "large"}, left(list)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	state := f.state()
	if state["large"] == "" || state["new"] != "" || !strings.HasSuffix(state["a.txt"], " 1\n") {
		t.Errorf("%+v", state)
	}
	// The new file is above the limit, and comes back all the same.
	if back := f.restore(r.Undo, false); !back.Success || !strings.HasSuffix(f.state()["new"], " "+random(4, 300)) {
		t.Errorf("%+v", back)
	}
}

// TestTooMuchToKeep checks that a restore which would destroy more than can be kept refuses
// these paths, and restores the others.
func TestTooMuchToKeep(t *testing.T) {
	f := newFolder(t, checkpoint.Options{FileBytes: 1000, Bytes: 100_000})
	f.put("a.txt", "1\n")
	f.create("r1", checkpoint.Begin)
	f.put("a.txt", "2\n")
	f.put("huge", random(1, 200_000))
	f.create("r1", checkpoint.End)
	r := f.restore("r1", true)
	if !r.Success || len(r.Refused) != 1 || r.Refused[0].Path != "huge" {
		t.Errorf("%+v", r)
	}
	if state := f.state(); !strings.HasSuffix(state["a.txt"], " 1\n") || !strings.HasSuffix(state["huge"], " "+random(1, 200_000)) {
		t.Error("a file without a copy was removed, or the other was not restored")
	}
}

// TestForce checks that force restores what others have changed since, whatever is in the
// place, and that this can be had back.
func TestForce(t *testing.T) {
	f := newFolder(t, checkpoint.Options{FileBytes: 100})
	f.ignoring()
	f.put("dir/file", "1\n")
	before := f.state()
	f.create("r1", checkpoint.Begin)
	f.put("a.txt", "2\n")
	f.remove("dir", "data.db")
	f.create("r1", checkpoint.End)
	f.put("a.txt", random(1, 500)) // above the limit
	f.put("dir", random(2, 500))   // in the place of a folder
	f.put("data.db", "mine\n")     // ignored
	mine := f.state()
	if r := f.restore("r1", false); r.Success || len(r.Conflicts) == 0 {
		t.Fatalf("%+v", r)
	}
	if diff := cmp.Diff(mine, f.state()); diff != "" {
		t.Errorf("a conflict changed files:\n%s", diff)
	}
	r := f.restore("r1", true)
	if diff := cmp.Diff(before, f.state()); diff != "" || !r.Success || len(r.Refused) > 0 {
		t.Errorf("%+v (-want +got):\n%s", r, diff)
	}
	if back := f.restore(r.Undo, false); !back.Success {
		t.Errorf("%+v", back)
	}
	if diff := cmp.Diff(mine, f.state()); diff != "" {
		t.Errorf("taken back (-want +got):\n%s", diff)
	}
}

// TestFolderInPlaceOfFile checks that an empty folder of the user, where a file is restored, is
// a conflict.
func TestFolderInPlaceOfFile(t *testing.T) {
	f := newFolder(t, checkpoint.Options{})
	f.put("name", "of before\n")
	before := f.state()
	f.create("t", checkpoint.Begin)
	f.remove("name")
	f.create("t", checkpoint.End)
	if err := os.Mkdir(f.path("name"), 0o755); err != nil {
		t.Fatal(err)
	}
	want := f.state()
	if r := f.restore("t", false); r.Success || len(r.Conflicts) != 1 || r.Conflicts[0].Path != "name" {
		t.Errorf("%+v", r)
	}
	if diff := cmp.Diff(want, f.state()); diff != "" {
		t.Error(diff)
	}
	r := f.restore("t", true)
	if diff := cmp.Diff(before, f.state()); diff != "" || !r.Success {
		t.Errorf("by force: %+v\n%s", r, diff)
	}
}

// TestClosedFolderBehindLink: an undo makes a folder of the task writable to remove what is in it, and
// puts a link in the place of its parent. The mode of the removed folder is not given to the one of the
// same name that the link leads to.
func TestClosedFolderBehindLink(t *testing.T) {
	f := newFolder(t, checkpoint.Options{})
	f.put("real/sub/keep", "of before\n")
	if err := os.Symlink("real", f.path("name")); err != nil {
		t.Fatal(err)
	}
	before := f.state()
	f.create("t", checkpoint.Begin)
	f.remove("name")
	f.put("name/sub/made", "by the task\n")
	if err := os.Chmod(f.path("name/sub"), 0o555); err != nil {
		t.Fatal(err)
	}
	f.create("t", checkpoint.End)
	r := f.restore("t", false)
	if diff := cmp.Diff(before, f.state()); diff != "" || !r.Success {
		t.Errorf("%+v\n%s", r, diff)
	}
}

// TestUntouched checks that the times of files which the task did not touch stay.
func TestUntouched(t *testing.T) {
	f := newFolder(t, checkpoint.Options{})
	f.put("dir/a", "1")
	f.put("dir/b", "1")
	before, err := os.Stat(f.path("dir/b"))
	if err != nil {
		t.Fatal(err)
	}
	f.task("r1", func() { f.put("dir/a", "2") })
	after, err := os.Stat(f.path("dir/b"))
	if err != nil || !after.ModTime().Equal(before.ModTime()) || !os.SameFile(before, after) {
		t.Errorf("%v: %v, %v", err, before, after)
	}
}

// TestUnreadableFolder checks that what was in a folder that could not be read does not count
// as added when it can be read later.
func TestUnreadableFolder(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root reads all folders")
	}
	f := newFolder(t, checkpoint.Options{})
	f.put("closed/file", "1")
	f.put("a.txt", "1")
	mode := func(m os.FileMode) {
		if err := os.Chmod(f.path("closed"), m); err != nil {
			t.Fatal(err)
		}
	}
	mode(0)
	t.Cleanup(func() { mode(0o755) })
	c := f.create("r1", checkpoint.Begin)
	if !slices.Equal(c.Uncovered.Unreadable, []string{"closed"}) {
		t.Errorf("%+v", c)
	}
	mode(0o755)
	f.put("a.txt", "2")
	f.create("r1", checkpoint.End)
	r := f.restore("r1", false)
	mode(0o755)
	if got, err := os.ReadFile(f.path("closed/file")); !r.Success || string(got) != "1" {
		t.Errorf("%v %+v", err, r)
	}
}

// TestClone checks that on a file system with clones files of any size are kept.
func TestClone(t *testing.T) {
	dir := t.TempDir()
	image := filepath.Join(t.TempDir(), "image")
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, 400<<20)); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"mkfs.xfs", "-q", image}, {"mount", "-o", "loop", image, dir}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Skipf("no file system with clones can be mounted here: %v %s", err, out)
		}
	}
	t.Cleanup(func() { _ = exec.Command("umount", dir).Run() })
	f := newFolder(t, checkpoint.Options{Dir: filepath.Join(dir, "checkpoints"), FileBytes: 1000, IgnoredFiles: 1})
	f.dir = filepath.Join(dir, "workspace")
	f.put("large", random(1, 5000))
	f.put("gone", random(2, 5000))
	f.put("same", random(3, 5000))
	f.task("r1", func() {
		f.put("large", random(4, 6000))
		f.remove("gone")
	})
	for range 120 { // the clones of removed checkpoints are removed
		f.put("large", random(5, 5000))
		f.create("", "")
	}
	if clones, err := filepath.Glob(filepath.Join(dir, "checkpoints", "*", "clones", "*")); err != nil || len(clones) < 2 || len(clones) > 110 {
		t.Errorf("%d clones, %v", len(clones), err)
	}
}

// TestTwoNames checks that a file which a task gave a second name is restored under both: a
// change of the mode of one name is one of the other.
func TestTwoNames(t *testing.T) {
	f := newFolder(t, checkpoint.Options{})
	f.put("a", "1")
	f.put("b", "2")
	f.task("r1", func() {
		f.remove("b")
		if err := errors.Join(os.Link(f.path("a"), f.path("b")), os.Link(f.path("a"), f.path("c")), os.Chmod(f.path("a"), 0o600)); err != nil {
			t.Fatal(err)
		}
	})
}

// TestNewestIndexDamaged checks that a file of the newest index that is missing, damaged or of
// another checkpoint changes nothing.
func TestNewestIndexDamaged(t *testing.T) {
	for name, damage := range map[string]func(string) error{
		"missing": os.Remove,
		"empty":   func(file string) error { return os.WriteFile(file, nil, 0o600) },
		"cut":     func(file string) error { return os.Truncate(file, 100) },
		"flipped": func(file string) error {
			data, err := os.ReadFile(file)
			if err == nil {
				data[len(data)-1] ^= 1
				err = os.WriteFile(file, data, 0o600)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFolder(t, checkpoint.Options{})
			f.ignoring()
			f.create("", "")
			newest := func() string {
				files, err := filepath.Glob(filepath.Join(f.store, "*", "newest"))
				if err != nil || len(files) != 1 {
					t.Fatalf("%v %v", files, err)
				}
				return files[0]
			}
			if err := damage(newest()); err != nil {
				t.Fatal(err)
			}
			f.task("r1", func() {
				f.put("a.txt", "changed\n")
				f.remove(".env")
				f.put("new", "1")
			})
			old, err := os.ReadFile(newest())
			if err != nil {
				t.Fatal(err)
			}
			f.put("a.txt", "later\n")
			f.create("", "")
			if err := os.WriteFile(newest(), old, 0o600); err != nil { // that of another checkpoint
				t.Fatal(err)
			}
			f.task("r2", func() { f.put("a.txt", "again\n") })
		})
	}
}

// TestObeyedPathsStay: what programs obey is listed as left, and neither written, removed nor made way.
func TestObeyedPathsStay(t *testing.T) {
	f := newFolder(t, checkpoint.Options{Obeyed: func(path string) bool {
		return slices.Contains(strings.Split(strings.TrimSuffix(path, "/"), "/"), ".obeyed")
	}})
	f.put(".obeyed/changed", "of before")
	f.put(".obeyed/removed", "of before")
	f.put("gone/.obeyed/file", "of before")
	f.put("becomes-folder", "of before")
	f.put("other", "of before")
	f.create("r", checkpoint.Begin)
	f.put(".obeyed/changed", "of the task")
	f.put(".obeyed/made", "of the task")
	f.remove(".obeyed/removed", "gone", "becomes-folder")
	f.put("becomes-folder/.obeyed/made", "of the task")
	f.put("other", "of the task")
	f.create("r", checkpoint.End)
	want := f.inside(".obeyed")
	if d, err := f.s.DiffOf(t.Context(), "", f.dir, "r", false); err != nil || slices.ContainsFunc(d.Files, func(c checkpoint.Change) bool {
		return strings.Contains(c.Path, ".obeyed") != (c.Left != "")
	}) {
		t.Errorf("%+v %v", d.Files, err)
	}
	r := f.restore("r", true)
	if diff := cmp.Diff(want, f.inside(".obeyed")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	now := f.state()
	if !r.Success || !strings.HasSuffix(now["other"], "of before") || now["becomes-folder/.obeyed/made"] == "" || now["gone/.obeyed/file"] != "" {
		t.Errorf("%+v %v", r, now)
	}
	var left, refused []string
	for _, c := range r.Files {
		if c.Left != "" {
			left = append(left, c.Path)
		}
	}
	for _, c := range r.Refused {
		refused = append(refused, c.Path)
	}
	if diff := cmp.Diff([]string{".obeyed/changed", ".obeyed/made", ".obeyed/removed", "becomes-folder/.obeyed/made", "gone/.obeyed/file"}, files(left)); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"becomes-folder"}, refused); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
}

// files returns the paths that are none of folders, sorted.
func files(paths []string) []string {
	slices.Sort(paths)
	return slices.DeleteFunc(paths, func(path string) bool { return strings.HasSuffix(path, "/") })
}
