package rootfs_test

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/internal/rootfs"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

func TestRules(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"shut/f", "a/b/f", "a/only"} {
		full := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var excluded []fs.FileInfo
	for _, name := range []string{"shut", "a/only"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		excluded = append(excluded, info)
	}
	var wrote []string
	tree, err := rootfs.Open(dir, rootfs.Rules{Excluded: excluded, Write: func(name string) error {
		wrote = append(wrote, name)
		if filepath.Base(name) == "no" {
			return abi.New(abi.Denied, "no")
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	for _, name := range []string{"shut", "shut/f", "a/only", "a/../shut/f"} {
		if p, err := tree.Resolve(name, false); abi.CodeOf(err) != abi.Denied {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
	write := func(name string) error {
		p, err := tree.Resolve(name, true)
		if err != nil {
			return err
		}
		defer p.Close()
		_, err = tree.WriteFile(p, []byte("x"))
		return err
	}
	if err := write("a/no"); abi.CodeOf(err) != abi.Denied {
		t.Errorf("a file that may not be written: %v", err)
	}
	if err := write("new/deep/f"); err != nil {
		t.Error(err)
	}
	if want := "[a/no new/deep/f new/deep/f new/deep/f]"; fmt.Sprint(wrote) != want {
		t.Errorf("asked about %v, want %s: the folders that are made, then the file", wrote, want)
	}
	for _, c := range []struct { // in this order: a/b is empty once its file is gone
		name string
		code abi.Code
	}{{"a/b", abi.Conflict}, {"a/b/f", ""}, {"none", ""}, {".", abi.Denied}} {
		p, err := tree.Resolve(c.name, false)
		if err != nil {
			t.Fatal(err)
		}
		if err := tree.Remove(p); abi.CodeOf(err) != c.code {
			t.Errorf("remove %s: %v, want %q", c.name, err, c.code)
		}
		p.Close()
	}
}

func TestEvalLinks(t *testing.T) {
	dir := rootfs.EvalLinks(t.TempDir())
	if err := os.Symlink(dir, filepath.Join(dir, "link")); err != nil {
		t.Skipf("no links here: %v", err)
	}
	if got, want := rootfs.EvalLinks(filepath.Join(dir, "link", "link", "none", "x")), filepath.Join(dir, "none", "x"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestLinksOf(t *testing.T) {
	dir := rootfs.EvalLinks(t.TempDir())
	for name, to := range map[string]string{"a": "sub/b", "sub/b": filepath.Join("..", "c"), "round": "round", "top": dir} {
		if err := os.MkdirAll(filepath.Join(dir, "sub"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Skipf("no links here: %v", err)
		}
	}
	for name, want := range map[string][]string{"c/x": nil, "a/none/x": {"a", "sub/b"}, "top/top/sub/b/x": {"top", "top", "sub/b"}, "top/c": {"top"}} {
		got := rootfs.LinksOf(filepath.Join(dir, filepath.FromSlash(name)))
		for i := range want {
			want[i] = filepath.Join(dir, filepath.FromSlash(want[i]))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if rootfs.LinksOf(filepath.Join(dir, "round")) == nil {
		t.Error("a link to itself is none")
	}
}

func Example() {
	dir, err := os.MkdirTemp("", "rootfs")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	tree, err := rootfs.Open(dir, rootfs.Rules{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer tree.Close()
	p, err := tree.Resolve("notes/today.txt", true)
	if err != nil {
		fmt.Println(err)
		return
	}
	created, err := tree.WriteFile(p, []byte("sunny"))
	fmt.Println(p.Path, created, err)
	p.Close()
	_, err = tree.Resolve("../../etc/passwd", false)
	fmt.Println(err)
	p, err = tree.Resolve("notes/today.txt", false)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	f, _, err := tree.OpenFile(p)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	fmt.Println(string(text), err)
	// Output:
	// notes/today.txt true <nil>
	// open "../../etc/passwd": outside the folder
	// sunny <nil>
}
