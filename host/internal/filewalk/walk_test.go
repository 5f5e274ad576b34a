package filewalk_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/internal/filewalk"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// visit walks a folder and returns whether the walk was complete.
func visit(t testing.TB, dir string, opt filewalk.Options, fn filewalk.Func) bool {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	complete, err := filewalk.Walk(context.Background(), root, opt, fn)
	if err != nil {
		t.Fatal(err)
	}
	return complete
}

// write makes files in a new folder.
func write(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// visited returns the paths that a walk visits, in its order.
func visited(t testing.TB, dir string, opt filewalk.Options) (list []string, complete bool) {
	t.Helper()
	complete = visit(t, dir, opt, func(name string, _ fs.DirEntry) error {
		list = append(list, name)
		return nil
	})
	return list, complete
}

func diff(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

var project = map[string]string{
	".gitignore": "out/\n*.log\n!keep.log\n", "a/b/c.txt": "", "a/z.txt": "", "a-b": "", "top.log": "", "keep.log": "", "out/x": "", "node_modules/x": "", ".git/x": "",
	"sub/.gitignore": "/only\n", "sub/only": "", "sub/d/only": "",
}

func TestOrder(t *testing.T) {
	dir := write(t, project)
	got, complete := visited(t, dir, filewalk.Options{})
	diff(t, "by path", got, ".gitignore", "a", "a/b", "a/b/c.txt", "a/z.txt", "a-b", "keep.log", "sub", "sub/.gitignore", "sub/d", "sub/d/only")
	if !complete || !slices.IsSortedFunc(got, filewalk.Compare) {
		t.Errorf("complete: %t; not in the order of Compare: %q", complete, got)
	}
	got, _ = visited(t, dir, filewalk.Options{ByLevel: true})
	diff(t, "by level", got, ".gitignore", "a", "a-b", "keep.log", "sub", "a/b", "a/z.txt", "sub/.gitignore", "sub/d", "a/b/c.txt", "sub/d/only")
	got, _ = visited(t, dir, filewalk.Options{Start: "sub/d"})
	diff(t, "from a folder below", got, "sub/d/only")
	got, _ = visited(t, dir, filewalk.Options{Start: "out"})
	diff(t, "from an ignored folder", got, "out/x")
	got, _ = visited(t, dir, filewalk.Options{All: true, Skip: func(name string, folder bool) bool { return folder && name == "a" || name == "sub/only" }})
	diff(t, "all", got, ".git", ".git/x", ".gitignore", "a-b", "keep.log", "node_modules", "node_modules/x", "out", "out/x", "sub", "sub/.gitignore", "sub/d", "sub/d/only", "top.log")
}

func TestCompare(t *testing.T) {
	for _, pair := range [][2]string{{"a", "b"}, {"a", "a/b"}, {"a/b", "a-b"}, {"a/z", "ab"}, {"a/b/c", "a/c"}, {"a/b", "a!"}} {
		if filewalk.Compare(pair[0], pair[1]) >= 0 || filewalk.Compare(pair[1], pair[0]) <= 0 || filewalk.Compare(pair[0], pair[0]) != 0 {
			t.Errorf("%q is not before %q", pair[0], pair[1])
		}
	}
}

func TestLimits(t *testing.T) {
	dir := write(t, project)
	got, complete := visited(t, dir, filewalk.Options{ByLevel: true, MaxEntries: 4})
	diff(t, "four entries", got, ".gitignore", "a", "a-b", "keep.log")
	if complete {
		t.Error("four entries: complete")
	}
	if got, complete = visited(t, dir, filewalk.Options{MaxEntries: 11}); len(got) != 11 || !complete {
		t.Errorf("%d entries with as many as the limit: complete: %t", len(got), complete)
	}
	got, complete = visited(t, dir, filewalk.Options{MaxDepth: 1})
	diff(t, "one level", got, ".gitignore", "a", "a-b", "keep.log", "sub")
	if complete {
		t.Error("one level: complete")
	}
	if _, complete = visited(t, dir, filewalk.Options{MaxDepth: 3}); !complete {
		t.Error("all levels: not complete")
	}
}

func TestErrorsOfTheCallback(t *testing.T) {
	dir := write(t, project)
	var got []string
	visit(t, dir, filewalk.Options{}, func(name string, entry fs.DirEntry) error {
		got = append(got, name)
		switch name {
		case "a":
			return fs.SkipDir
		case "sub/.gitignore":
			return fmt.Errorf("enough: %w", fs.SkipAll)
		}
		return nil
	})
	diff(t, "SkipDir and SkipAll", got, ".gitignore", "a", "a-b", "keep.log", "sub", "sub/.gitignore")
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	mistake := errors.New("mistake")
	if _, err := filewalk.Walk(t.Context(), root, filewalk.Options{}, func(string, fs.DirEntry) error { return mistake }); !errors.Is(err, mistake) {
		t.Errorf("got %v, want the callback's error", err)
	}
	if _, err := filewalk.Walk(t.Context(), root, filewalk.Options{Start: "none"}, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a start that does not exist: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	_, err = filewalk.Walk(ctx, root, filewalk.Options{}, func(string, fs.DirEntry) error {
		n++
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) || n != 1 {
		t.Errorf("cancelled: %v after %d entries", err, n)
	}
}

func TestLinksAreNotFollowed(t *testing.T) {
	outside := write(t, map[string]string{"x": "", ".gitignore": "*\n"})
	dir := write(t, map[string]string{"real/f": ""})
	for name, target := range map[string]string{"dir": "real", "file": "real/f", "loop": ".", "out": outside, ".gitignore": filepath.Join(outside, ".gitignore")} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Skipf("this system has no links: %v", err)
		}
	}
	got, _ := visited(t, dir, filewalk.Options{})
	diff(t, "links", got, ".gitignore", "dir", "file", "loop", "out", "real", "real/f")
}

func TestReadFile(t *testing.T) {
	dir := write(t, map[string]string{"f": "text", "other": "text"})
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	info, err := root.Lstat("f")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := filewalk.ReadFile(root, "f", info, 4); err != nil || string(text) != "text" {
		t.Errorf("got %q, %v", text, err)
	}
	if text, err := filewalk.ReadFile(root, "f", info, 3); !errors.Is(err, filewalk.ErrTooLarge) {
		t.Errorf("a limit of 3 bytes: %q, %v", text, err)
	}
	if text, err := filewalk.ReadFile(root, "other", info, 4); !errors.Is(err, filewalk.ErrReplaced) {
		t.Errorf("another file: %q, %v", text, err)
	}
	folder, err := root.Stat(".")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := filewalk.ReadFile(root, ".", folder, 4); !errors.Is(err, filewalk.ErrNotRegular) {
		t.Errorf("a folder: %q, %v", text, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("grown"), 0o644); err != nil {
		t.Fatal(err)
	}
	if text, err := filewalk.ReadFile(root, "f", info, 4); !errors.Is(err, filewalk.ErrTooLarge) {
		t.Errorf("a file that has grown: %q, %v", text, err)
	}
}

func TestUnreadableFolderIsEmpty(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root can list every folder")
	}
	dir := write(t, map[string]string{"a/x": "", "b": ""})
	if err := os.Chmod(filepath.Join(dir, "a"), 0); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(filepath.Join(dir, "a"), 0o700)
	got, complete := visited(t, dir, filewalk.Options{})
	diff(t, "the rest", got, "a", "b")
	if !complete {
		t.Error("not complete")
	}
}

// BenchmarkWalk walks 20,000 files in 1,000 folders with .gitignore files.
func BenchmarkWalk(b *testing.B) {
	files := map[string]string{".gitignore": strings.Repeat("*.tmp\n/build/\nnode_modules/\n**/gen/*.go\n!keep.tmp\n", 4)}
	for i := range 20_000 {
		files[fmt.Sprintf("pkg%02d/sub%02d/dir%d/file%d.%s", i%10, i/10%10, i/100%10, i, []string{"go", "tmp", "md", "txt"}[i/1000%4])] = "x"
	}
	dir := write(b, files)
	root, err := os.OpenRoot(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer root.Close()
	for b.Loop() {
		n := 0
		if _, err := filewalk.Walk(context.Background(), root, filewalk.Options{}, func(string, fs.DirEntry) error {
			n++
			return nil
		}); err != nil || n < 15_000 {
			b.Fatal(n, err)
		}
	}
}

// TestWalkEndsInDeepFolders: a chain of folders that is deeper than any project's ends a walk with an error
// that names it, wherever it is, unless the walk ends above.
func TestWalkEndsInDeepFolders(t *testing.T) {
	dir := write(t, map[string]string{"a.txt": "", ".gitignore": ""})
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	at := root
	for range 252 {
		if err := at.Mkdir("d", 0o755); err != nil {
			t.Fatal(err)
		}
		below, err := at.OpenRoot("d")
		if err != nil {
			t.Fatal(err)
		}
		if at != root {
			at.Close()
		}
		at = below
	}
	at.Close()
	for name, opt := range map[string]filewalk.Options{"by path": {}, "by level": {ByLevel: true}, "with a greater limit": {MaxDepth: 5000}} {
		_, err := filewalk.Walk(t.Context(), root, opt, func(string, fs.DirEntry) error { return nil })
		if e := abi.As(err); e == nil || e.Code != abi.Limit || !strings.Contains(e.Message, `"d/d/`) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, complete := visited(t, dir, filewalk.Options{MaxDepth: 249}); complete {
		t.Error("a walk of 249 levels is complete")
	}
	if err := os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("d/\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if list, complete := visited(t, dir, filewalk.Options{}); !complete || !slices.Contains(list, "a.txt") {
		t.Errorf("with the folder ignored: %q, complete %t", list, complete)
	}
}

// TestWalkFollowsNoLinkThatReplacesAFolder: a program that puts a link in the place of a folder after the walk has seen it
// has the walk list nothing of where the link leads, whether it replaces the folder or one above it.
func TestWalkFollowsNoLinkThatReplacesAFolder(t *testing.T) {
	for _, byLevel := range []bool{false, true} {
		for _, replaced := range []string{"a", "a/b", "start"} {
			t.Run(fmt.Sprintf("by level %t, %s", byLevel, replaced), func(t *testing.T) {
				dir := t.TempDir()
				for _, name := range []string{"a/b/mine.txt", "host/b/secret.txt", "host/secret.txt", "start/mine.txt"} {
					if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				root, err := os.OpenRoot(dir)
				if err != nil {
					t.Fatal(err)
				}
				defer root.Close()
				swap := func() {
					t.Helper()
					if err := os.Rename(filepath.Join(dir, replaced), filepath.Join(dir, "away")); err != nil {
						t.Fatal(err)
					}
					if err := os.Symlink(filepath.Join(strings.Repeat("../", strings.Count(replaced, "/")), "host"), filepath.Join(dir, replaced)); err != nil {
						t.Fatal(err)
					}
				}
				opt := filewalk.Options{Start: "a", ByLevel: byLevel}
				switch replaced {
				case "a":
					opt.Start = ""
				case "start":
					opt.Start = "start"
					swap()
				}
				_, err = filewalk.Walk(t.Context(), root, opt, func(name string, _ fs.DirEntry) error {
					if strings.Contains(name, "secret") && !strings.HasPrefix(name, "host/") {
						t.Errorf("the walk lists %s", name)
					}
					if name == replaced {
						swap()
					}
					return nil
				})
				if (err != nil) != (replaced == "start") {
					t.Error(err)
				}
			})
		}
	}
}
