package checkpoint_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/checkpoint"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A folder is a workspace of a test.
type folder struct {
	t     testing.TB
	dir   string
	store string // folder of the service
	s     *checkpoint.Service
}

func newFolder(t *testing.T, opt checkpoint.Options) *folder {
	t.Helper()
	if opt.Dir == "" {
		opt.Dir = t.TempDir()
	}
	dir, err := filepath.EvalSymlinks(t.TempDir()) // as it is given for agents
	if err != nil {
		t.Fatal(err)
	}
	return &folder{t: t, dir: dir, store: opt.Dir, s: checkpoint.New(opt)}
}

func (f *folder) path(name string) string { return filepath.Join(f.dir, filepath.FromSlash(name)) }

func (f *folder) put(name, text string) {
	f.t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(f.path(name)), 0o755), os.WriteFile(f.path(name), []byte(text), 0o644)); err != nil {
		f.t.Fatal(err)
	}
}

func (f *folder) remove(names ...string) {
	f.t.Helper()
	for _, name := range names {
		if err := os.RemoveAll(f.path(name)); err != nil {
			f.t.Fatal(err)
		}
	}
}

func (f *folder) link(target, name string) {
	f.t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(f.path(name)), 0o755), os.Symlink(target, f.path(name))); err != nil {
		f.t.Fatal(err)
	}
}

// makeExecutable sets the executable bit for all who may read a file, which umask decides.
func (f *folder) makeExecutable(name string) {
	f.t.Helper()
	info, err := os.Stat(f.path(name))
	if err != nil {
		f.t.Fatal(err)
	}
	mode := info.Mode().Perm()
	if err := os.Chmod(f.path(name), mode|mode>>2&0o111); err != nil {
		f.t.Fatal(err)
	}
}

// state returns each path with its content, mode, owner and kind; all but git's own.
func (f *folder) state() map[string]string {
	f.t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(f.dir, func(name string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == ".git" && name != f.dir {
			return filepath.SkipDir
		}
		rel, _ := filepath.Rel(f.dir, name)
		info, err := d.Info()
		if err != nil || rel == "." {
			return err
		}
		if d.IsDir() {
			out[rel+"/"] = info.Mode().String() + owner(info)
			return nil
		}
		if info.Mode()&os.ModeSymlink != 0 {
			target, err := os.Readlink(name)
			out[rel] = "-> " + target + owner(info)
			return err
		}
		data, err := os.ReadFile(name)
		out[rel] = info.Mode().String() + owner(info) + " " + string(data)
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return out
}

// inside returns what is in a folder.
func (f *folder) inside(dir string) map[string]string {
	state := f.state()
	for path := range state {
		if !strings.HasPrefix(path, dir+"/") || path == dir+"/" {
			delete(state, path)
		}
	}
	return state
}

func (f *folder) create(of, label string) checkpoint.Checkpoint {
	f.t.Helper()
	c, err := f.s.Create(f.t.Context(), checkpoint.Request{Workspace: f.dir, Of: of, Label: label})
	if err != nil {
		f.t.Fatal(err)
	}
	return c
}

func (f *folder) restore(of string, force bool) checkpoint.Restored {
	f.t.Helper()
	r, err := f.s.Restore(f.t.Context(), "", f.dir, of, force)
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

// git runs git in the workspace as a user does.
func (f *folder) git(args ...string) string {
	f.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=u", "-c", "user.email=u@example.com", "-c", "init.defaultBranch=main"}, args...)...)
	cmd.Dir = f.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		f.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func paths(list []checkpoint.Change) []string {
	out := []string{}
	for _, c := range list {
		out = append(out, c.Change+" "+c.Path)
	}
	return out
}

// edit makes all kinds of changes.
func (f *folder) edit() {
	f.put("changed.txt", "one\nzwei\nthree\n")
	f.put("new/deep/file.txt", "new\n")
	f.remove("deleted.txt", "link", "becomes-link", "folder/only.txt", "folder")
	f.link("elsewhere", "link")
	f.link("changed.txt", "becomes-link")
	f.makeExecutable("script")
	f.put("folder", "now a file\n")
	f.put("bin", "\x00\x02")
	f.put("odd \n\"name", "2")
}

func (f *folder) begin() {
	f.put("same.txt", "same\n")
	f.put("changed.txt", "one\ntwo\nthree\n")
	f.put("deleted.txt", "deleted\r\n")
	f.put("becomes-link", "file\n")
	f.put("script", "#!/bin/sh\n")
	f.put("folder/only.txt", "only\n")
	f.put("bin", "\x00\x01")
	f.put("odd \n\"name", "1")
	f.link("nowhere", "link")
}

// Specification: "Deleted, created, mode and link changes are all handled." Also in folders
// without git, in repositories without commits, and with attributes that convert files.
func TestSpecUndo(t *testing.T) {
	for name, setup := range map[string]func(*folder){
		"without git":     func(*folder) {},
		"without commits": func(f *folder) { f.git("init") },
		"repository": func(f *folder) {
			f.git("init")
			f.git("add", ".")
			f.git("commit", "-qm", "first")
			f.put(".gitattributes", "* text=auto eol=crlf ident filter=evil\n")
			f.git("config", "filter.evil.clean", "touch "+f.path("../evil"))
			f.git("config", "core.autocrlf", "true")
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFolder(t, checkpoint.Options{})
			f.begin()
			setup(f)
			want := f.state()
			f.create("r1", checkpoint.Begin)
			f.edit()
			changed := f.state()
			f.create("r1", checkpoint.End)
			d, err := f.s.DiffOf(t.Context(), "", f.dir, "r1", false)
			if err != nil {
				t.Fatal(err)
			}
			files := []string{
				"type becomes-link", "modified bin", "modified changed.txt", "deleted deleted.txt", "type folder", "deleted folder/only.txt",
				"modified link", "added new/deep/file.txt", "modified odd \n\"name", "mode script",
			}
			if diff := cmp.Diff(files, paths(d.Files)); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			if c := d.Files[2]; c.Added != 1 || c.Removed != 1 || !d.Files[1].Binary {
				t.Errorf("%+v", d.Files)
			}
			r := f.restore("r1", false)
			if !r.Success || len(r.Conflicts) > 0 || r.Undo == "" {
				t.Fatalf("%+v", r)
			}
			if diff := cmp.Diff(want, f.state()); diff != "" {
				t.Errorf("restored (-want +got):\n%s", diff)
			}
			if _, err := os.Stat(f.path("new")); err == nil {
				t.Error("an empty folder is left")
			}
			// Once more changes nothing, and the restore can be taken back.
			if again := f.restore("r1", false); !again.Success || len(again.Files) > 0 {
				t.Errorf("%+v", again)
			}
			if back := f.restore(r.Undo, false); !back.Success {
				t.Errorf("%+v", back)
			}
			if diff := cmp.Diff(changed, f.state()); diff != "" {
				t.Errorf("taken back (-want +got):\n%s", diff)
			}
			if _, err := os.Stat(f.path("../evil")); err == nil {
				t.Error("a program of the repository was executed")
			}
		})
	}
}

// Specification: "does not touch the user's index, refs or objects."
func TestSpecRepositoryOfTheUser(t *testing.T) {
	f := newFolder(t, checkpoint.Options{})
	f.begin()
	f.git("init")
	f.git("add", "same.txt")
	before := f.gitFiles()
	f.create("r1", checkpoint.Begin)
	f.edit()
	f.create("r1", checkpoint.End)
	if r := f.restore("r1", false); !r.Success {
		t.Fatalf("%+v", r)
	}
	if diff := cmp.Diff(before, f.gitFiles()); diff != "" {
		t.Errorf("the repository (-before +after):\n%s", diff)
	}
}

func (f *folder) gitFiles() map[string]string {
	g := &folder{t: f.t, dir: f.path(".git")}
	return g.state()
}

// TestIgnored checks that files which git ignores are kept within limits: by nested .gitignore
// files, by those above the workspace and by info/exclude; that ignored files which the user's
// repository has are kept as others; and that a change of what is not kept is named.
func TestIgnored(t *testing.T) {
	f := newFolder(t, checkpoint.Options{IgnoredFileBytes: 100, IgnoredBytes: 150, IgnoredFiles: 4})
	top := *f
	top.git("init")
	top.put(".gitignore", "node_modules/\n")
	top.put(".git/info/exclude", "excluded\n")
	f.dir = top.path("sub")
	for _, name := range []string{"a.txt", "node_modules/x.js", "node_modules/deep/y.js", "excluded", "in/.gitignore", "in/tracked.log", "in/other.log"} {
		f.put(name, "1\n")
	}
	f.put("in/.gitignore", "*.log\n")
	f.put("in/small.log", strings.Repeat("s", 99)) // within the limit of one file
	f.put("in/large.log", strings.Repeat("l", 101))
	f.put("node_modules/deep/z.js", strings.Repeat("z", 50)) // beyond the limit of all
	f.git("add", "-f", "in/tracked.log")
	c := f.create("r1", checkpoint.Begin)
	if c.Files != 7 || c.Uncovered.Ignored != 3 {
		t.Errorf("%+v", c)
	}
	for _, name := range []string{"a.txt", "node_modules/x.js", "excluded", "in/tracked.log", "in/other.log", "in/small.log", "in/large.log", "node_modules/deep/y.js"} {
		f.put(name, "2\n")
	}
	f.put("in/.gitignore", "*.log\na.txt\n") // the rules of the begin hold
	f.create("r1", checkpoint.End)
	r := f.restore("r1", false)
	if diff := cmp.Diff([]string{
		"modified a.txt", "modified in/.gitignore", "modified in/tracked.log",
		"modified excluded", "modified in/large.log", "modified in/other.log", "modified in/small.log", "modified node_modules/deep/y.js", "modified node_modules/x.js",
	}, paths(r.Files)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, c := range r.Files {
		if want := c.Path == "in/large.log" || c.Path == "node_modules/deep/y.js"; (c.Left != "") != want {
			t.Errorf("%+v", c)
		}
	}
	for name, want := range map[string]string{
		"a.txt": "1\n", "in/tracked.log": "1\n", "in/other.log": "1\n", "excluded": "1\n", "node_modules/x.js": "1\n",
		"in/small.log": strings.Repeat("s", 99), "in/large.log": "2\n", "node_modules/deep/y.js": "2\n",
	} {
		if got, _ := os.ReadFile(f.path(name)); string(got) != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// Specification: "Files over a bound, what cannot be read and .git of nested repositories are
// not covered: the result lists/counts them".
func TestSpecUncovered(t *testing.T) {
	state := t.TempDir()
	f := newFolder(t, checkpoint.Options{FileBytes: 100})
	f.put("a.txt", "1")
	f.put("large", strings.Repeat("x", 101))
	for _, nested := range []string{"nested", "empty"} {
		n := *f
		n.dir = f.path(nested)
		n.put("file", "1")
		n.git("init")
		if nested == "nested" {
			n.git("add", ".")
			n.git("commit", "-qm", "first")
		}
	}
	f.put("secret", "1")
	if err := os.Chmod(f.path("secret"), 0); err != nil {
		t.Fatal(err)
	}
	f.s = checkpoint.New(checkpoint.Options{Dir: filepath.Join(f.dir, "state", "checkpoints"), FileBytes: 100, Exclude: []string{f.path("state"), state}})
	f.put("state/token", "1")
	c := f.create("r1", checkpoint.Begin)
	want := checkpoint.Uncovered{Repositories: []string{"empty", "nested"}, Large: []string{"large"}}
	files := 4
	if os.Getuid() != 0 {
		want.Unreadable, files = []string{"secret"}, 3
	}
	if diff := cmp.Diff(want, c.Uncovered); diff != "" || c.Files != files {
		t.Errorf("%d files (-want +got):\n%s", c.Files, diff)
	}
	// A file that grows above the bound is the same file: its old content comes back, and the
	// present one is kept at any size.
	grown := strings.Repeat("x", 101)
	f.put("a.txt", grown)
	f.create("r1", checkpoint.End)
	r := f.restore("r1", false)
	if got, _ := os.ReadFile(f.path("a.txt")); !r.Success || string(got) != "1" {
		t.Errorf("%q %+v", got, r)
	}
	back := f.restore(r.Undo, false)
	if got, _ := os.ReadFile(f.path("a.txt")); !back.Success || string(got) != grown {
		t.Errorf("%q %+v", got, back)
	}
}

// Specification: "A file that the user changed since the end of the run is a conflict:
// nothing is changed, the conflicts are listed, --force restores anyway."
func TestSpecConflict(t *testing.T) {
	f := newFolder(t, checkpoint.Options{})
	f.begin()
	want := f.state()
	f.create("r1", checkpoint.Begin)
	f.edit()
	f.create("r1", checkpoint.End)
	f.put("changed.txt", "mine\n")
	f.put("deleted.txt/mine", "mine\n")
	f.put("unrelated.txt", "mine\n")
	f.put("script", "#!/bin/sh\n") // content as at the begin, mode as at the end
	mine := f.state()
	r := f.restore("r1", false)
	var conflicts []string
	for _, c := range r.Conflicts {
		conflicts = append(conflicts, c.Path)
	}
	if diff := cmp.Diff([]string{"changed.txt", "deleted.txt", "deleted.txt/mine"}, conflicts); diff != "" || r.Success || r.Undo != "" {
		t.Fatalf("%+v (-want +got):\n%s", r, diff)
	}
	if diff := cmp.Diff(mine, f.state()); diff != "" {
		t.Errorf("a conflict changed files:\n%s", diff)
	}
	r = f.restore("r1", true)
	if !r.Success {
		t.Fatalf("%+v", r)
	}
	want["unrelated.txt"] = mine["unrelated.txt"]
	if diff := cmp.Diff(want, f.state()); diff != "" {
		t.Errorf("forced (-want +got):\n%s", diff)
	}
	if back := f.restore(r.Undo, false); !back.Success {
		t.Errorf("%+v", back)
	}
	if diff := cmp.Diff(mine, f.state()); diff != "" {
		t.Errorf("taken back (-want +got):\n%s", diff)
	}
}

// TestNoEnd checks that a scope without an end needs force, and so does one that another
// overlaps.
func TestNoEnd(t *testing.T) {
	f := newFolder(t, checkpoint.Options{})
	f.put("a", "1")
	f.create("r1", checkpoint.Begin)
	f.put("a", "2")
	if r := f.restore("r1", false); r.Success || !r.Open || len(r.Files) != 1 {
		t.Errorf("%+v", r)
	}
	f.create("r2", checkpoint.Begin)
	f.put("b", "1")
	f.create("r1", checkpoint.End)
	f.create("r2", checkpoint.End)
	if r := f.restore("r1", false); r.Success || len(r.Conflicts) != 1 || r.Conflicts[0].Reason != "r2 changed files of this folder at the same time" {
		t.Errorf("%+v", r)
	}
	if r := f.restore("r2", false); r.Success {
		t.Errorf("%+v", r)
	}
	if r := f.restore("r2", true); !r.Success || len(r.Files) != 1 {
		t.Errorf("%+v", r)
	}
	if _, err := f.s.Restore(t.Context(), "", f.dir, "r3", false); abi.CodeOf(err) != abi.NotFound {
		t.Errorf("%v", err)
	}
}

// TestKeptModes checks that a restore keeps who may read a file.
func TestKeptModes(t *testing.T) {
	f := newFolder(t, checkpoint.Options{})
	f.put("private", "1")
	if err := os.Chmod(f.path("private"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.create("r1", checkpoint.Begin)
	f.put("private", "2")
	f.create("r1", checkpoint.End)
	f.restore("r1", false)
	if got := f.state()["private"]; got != "-rw------- 1" {
		t.Error(got)
	}
}

// TestHardLink checks that a restore does not write through a second name of a file.
func TestHardLink(t *testing.T) {
	f := newFolder(t, checkpoint.Options{})
	outside := filepath.Join(t.TempDir(), "outside")
	f.put("a", "1")
	f.create("r1", checkpoint.Begin)
	f.remove("a")
	if err := errors.Join(os.WriteFile(outside, []byte("theirs"), 0o644), os.Link(outside, f.path("a"))); err != nil {
		t.Fatal(err)
	}
	f.create("r1", checkpoint.End)
	want := strings.Replace(f.state()["a"], "theirs", "1", 1)
	f.restore("r1", false)
	if got, _ := os.ReadFile(outside); string(got) != "theirs" || f.state()["a"] != want {
		t.Errorf("%q, %q", got, f.state()["a"])
	}
}

// TestSameKey checks that a repeated call makes one checkpoint.
func TestSameKey(t *testing.T) {
	f := newFolder(t, checkpoint.Options{})
	f.put("a", "1")
	var ids []string
	for range 2 {
		c, err := f.s.Create(t.Context(), checkpoint.Request{Workspace: f.dir, Key: "k", Of: "r1", Label: checkpoint.Begin})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, c.ID)
		f.put("a", "2")
	}
	list, err := f.s.List(t.Context(), "", f.dir, "")
	if err != nil || len(list) != 1 || ids[0] != ids[1] {
		t.Errorf("%v %v %v", ids, list, err)
	}
}

// Specification: "Bounded in number and bytes, pruned with the oldest".
func TestSpecPruned(t *testing.T) {
	f := newFolder(t, checkpoint.Options{Keep: 8})
	f.put("a", "first")
	f.create("r0", checkpoint.Begin)
	for range 12 {
		f.create("", "")
	}
	list, err := f.s.List(t.Context(), "", f.dir, "")
	if err != nil || len(list) > 8 || len(list) < 5 || list[0].Of == "r0" {
		t.Errorf("%d %v", len(list), err)
	}
	dir := t.TempDir()
	f = newFolder(t, checkpoint.Options{Dir: dir, Bytes: 300 << 10, FileBytes: 1 << 20})
	for i := range 10 {
		f.put("random", random(i, 100<<10))
		f.create("", "")
	}
	if list, err = f.s.List(t.Context(), "", f.dir, ""); err != nil || len(list) == 10 || len(list) == 0 {
		t.Errorf("%d %v", len(list), err)
	}
	size := int64(0)
	if err := filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if info, infoErr := d.Info(); infoErr == nil && !d.IsDir() {
			size += info.Size()
		}
		return err
	}); err != nil || size > 600<<10 {
		t.Errorf("%d bytes, %v", size, err)
	}
	f.put("random", random(0, 400<<10))
	_, err = f.s.Create(t.Context(), checkpoint.Request{Workspace: f.dir})
	if abi.CodeOf(err) != abi.Limit || !strings.Contains(abi.As(err).Hint, "checkpoints.size") {
		t.Errorf("%v", err)
	}
}

// random returns text that cannot be compressed, the same for the same seed.
func random(seed, n int) string {
	out := make([]byte, n)
	x := uint32(seed*2654435761 + 1)
	for i := range out {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		out[i] = byte(x >> 24)
	}
	return string(out)
}

// TestLeastRecentlyUsed checks that the repositories of folders that are not used any more
// are removed.
func TestLeastRecentlyUsed(t *testing.T) {
	dir := t.TempDir()
	s := checkpoint.New(checkpoint.Options{Dir: dir, Most: 3})
	for range 5 {
		if _, err := s.Create(t.Context(), checkpoint.Request{Workspace: t.TempDir()}); err != nil {
			t.Fatal(err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 3 {
		t.Errorf("%d repositories, %v", len(entries), err)
	}
}

// TestBadWorkspace checks the errors of folders that there are not, and without git.
func TestBadWorkspace(t *testing.T) {
	f := newFolder(t, checkpoint.Options{})
	f.put("a", "1")
	for _, dir := range []string{f.path("none"), f.path("a")} {
		if _, err := f.s.Create(t.Context(), checkpoint.Request{Workspace: dir}); err == nil {
			t.Errorf("%s: no error", dir)
		}
	}
	t.Setenv("PATH", "")
	s := checkpoint.New(checkpoint.Options{Dir: t.TempDir()})
	if _, err := s.Create(t.Context(), checkpoint.Request{Workspace: f.dir}); abi.CodeOf(err) != abi.Unavailable || abi.As(err).Hint == "" {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.s.Create(ctx, checkpoint.Request{Workspace: f.dir}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestDeepFoldersAreUncovered: a chain of folders that is deeper than any project's neither fails a
// checkpoint nor takes a descriptor a level; what is below the bound is named.
func TestDeepFoldersAreUncovered(t *testing.T) {
	f := newFolder(t, checkpoint.Options{})
	f.put("a.txt", "1")
	deep := strings.Repeat("d/", 251)
	f.put(deep+"b.txt", "1")
	c := f.create("r1", checkpoint.Begin)
	if want := []string{strings.TrimSuffix(deep, "/")}; !slices.Equal(c.Uncovered.Unreadable, want) {
		t.Errorf("unreadable: %d, want %d: %.80q", len(c.Uncovered.Unreadable), len(want), c.Uncovered.Unreadable)
	}
	f.put("a.txt", "2")
	f.create("r1", checkpoint.End)
	if r := f.restore("r1", false); !r.Success {
		t.Errorf("%+v", r)
	}
	for _, name := range []string{"a.txt", deep + "b.txt"} {
		if text, err := os.ReadFile(f.path(name)); string(text) != "1" {
			t.Errorf("%.20s: %s %v", name, text, err)
		}
	}
}
