package gitlfs_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
	"github.com/sentinel-runtime/sentinel/host/internal/gitlfs"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// repository makes one, with a git for it that the configuration of the machine does not reach.
func repository(t *testing.T) (dir string, git gitlfs.Git) {
	t.Helper()
	g := gitexec.Runner{Program: gitexec.LookPath()}
	if g.Program == "" {
		t.Skip("git is not on this machine")
	}
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	dir = t.TempDir()
	git = func(ctx context.Context, stdin string, args ...string) (gitexec.Answer, error) {
		return g.Exec(ctx, dir, "", stdin, args...)
	}
	must(t, git, "init", "--quiet")
	return dir, git
}

func must(t *testing.T, git gitlfs.Git, args ...string) {
	t.Helper()
	if a, err := git(t.Context(), "", args...); err != nil || a.Code != 0 {
		t.Fatalf("git %v: %v, %+v", args, err, a)
	}
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// The store is inside of the repository, or where the user's configuration says.
func TestStore(t *testing.T) {
	t.Setenv("HOME", t.TempDir()) // git refuses ~ without one
	dir, git := repository(t)
	own := filepath.Join(dir, ".git")
	for _, tt := range []struct{ value, want string }{
		{"", filepath.Join(own, "lfs", "objects")}, {"elsewhere", filepath.Join(own, "elsewhere", "objects")}, {filepath.Join(own, "deep"), filepath.Join(own, "deep", "objects")},
		{"../outside", ""}, {t.TempDir(), ""}, {"~/x", ""},
	} {
		if tt.value != "" {
			must(t, git, "config", "lfs.storage", tt.value)
		}
		got, err := gitlfs.Store(t.Context(), git, own)
		if got != tt.want || (tt.want == "") != (abi.CodeOf(err) == abi.Denied) {
			t.Errorf("%q: %q, %v", tt.value, got, err)
		}
	}
	must(t, git, "config", "--unset", "lfs.storage")
	config, shared := filepath.Join(t.TempDir(), "config"), t.TempDir()
	put(t, config, "[lfs]\n\tstorage = "+shared+"\n")
	t.Setenv("GIT_CONFIG_GLOBAL", config)
	if got, err := gitlfs.Store(t.Context(), git, own); err != nil || got != filepath.Join(shared, "objects") {
		t.Errorf("of the user: %q, %v", got, err)
	}
}

// What is executed in a clone may plant files among its objects. Only objects are copied.
func TestShare(t *testing.T) {
	clone, store, secret := t.TempDir(), filepath.Join(t.TempDir(), "objects"), filepath.Join(t.TempDir(), "secret")
	at := func(dir, name string) string { return filepath.Join(dir, name[:2], name[2:4], name) }
	objects := filepath.Join(clone, "lfs", "objects")
	good, bad, linked, had := digest("good"), strings.Repeat("ab", 32), digest("secret"), digest("had")
	put(t, secret, "secret")
	put(t, at(objects, good), "good")
	put(t, at(objects, bad), "of another content")
	put(t, filepath.Join(objects, "no object"), "x")
	put(t, at(objects, had), "had")
	put(t, at(store, had), "as it is")
	if err := os.MkdirAll(filepath.Dir(at(objects, linked)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, at(objects, linked)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := gitlfs.Share(t.Context(), clone, store); err != nil {
			t.Fatal(err)
		}
	}
	found, _ := filepath.Glob(filepath.Join(store, "??", "??", "*"))
	want := []string{at(store, good), at(store, had)}
	slices.Sort(want)
	if !slices.Equal(found, want) {
		t.Errorf("the store has %q, want %q", found, want)
	}
	if text, _ := os.ReadFile(at(store, had)); string(text) != "as it is" {
		t.Errorf("an object was replaced: %q", text)
	}
	other := filepath.Join(t.TempDir(), "objects")
	if err := gitlfs.Fetch(t.Context(), objects, other, []string{good, bad, linked, digest("missing")}); err != nil {
		t.Fatal(err)
	}
	if found, _ = filepath.Glob(filepath.Join(other, "??", "??", "*")); !slices.Equal(found, []string{at(other, good)}) {
		t.Errorf("fetched %q", found)
	}
	if err := gitlfs.Share(t.Context(), t.TempDir(), store); err != nil {
		t.Errorf("a clone without objects: %v", err)
	}
}

// The objects that a push needs are those of new pointers in any commit, whatever else has
// their form.
func TestObjects(t *testing.T) {
	dir, git := repository(t)
	pointer := func(text string) string {
		return "version https://git-lfs.github.com/spec/v1\noid sha256:" + digest(text) + "\nsize 3\n"
	}
	commit := func(files map[string]string) {
		t.Helper()
		for name, text := range files {
			put(t, filepath.Join(dir, name), text)
		}
		must(t, git, "add", "--all")
		must(t, git, "-c", "user.name=t", "-c", "user.email=t@t", "commit", "--quiet", "-m", "x")
	}
	commit(map[string]string{"a.bin": pointer("a")})
	if got, err := gitlfs.Objects(t.Context(), git, "HEAD"); err != nil || len(got) != 0 {
		t.Errorf("without attributes: %v, %v", got, err)
	}
	commit(map[string]string{"deep/.gitattributes": "*.bin filter=lfs\n", "text.txt": "oid sha256:" + digest("text") + "\n", "large.txt": pointer("large") + strings.Repeat("x", 5000)})
	must(t, git, "branch", "old")
	commit(map[string]string{"b.bin": pointer("b")})
	commit(map[string]string{"b.bin": pointer("b2"), "deep/c.bin": pointer("c")})
	for name, tt := range map[string]struct {
		commit  string
		without []string
		want    []string
	}{
		"all":  {"HEAD", nil, []string{"a", "b", "b2", "c"}},
		"new":  {"HEAD", []string{"refs/heads/old"}, []string{"b", "b2", "c"}},
		"tree": {"HEAD^{tree}", nil, []string{"a", "b2", "c"}},
		"none": {"HEAD", []string{"HEAD"}, nil},
	} {
		want := []string{}
		for _, text := range tt.want {
			want = append(want, digest(text))
		}
		slices.Sort(want)
		if got, err := gitlfs.Objects(t.Context(), git, tt.commit, tt.without...); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v; want %v", name, got, err, want)
		}
	}
}

// The server is what the user's configuration says, or the default branch of the remote, or the URL: nothing
// that the author of another branch has written.
func TestServer(t *testing.T) {
	dir, git := repository(t)
	commit := func(ref, lfsconfig string) {
		t.Helper()
		put(t, filepath.Join(dir, ".lfsconfig"), lfsconfig)
		must(t, git, "add", ".lfsconfig")
		must(t, git, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "m")
		must(t, git, "update-ref", ref, "HEAD")
	}
	server := func(remote, url, download, upload string) {
		t.Helper()
		got, err := gitlfs.Server(t.Context(), git, remote, url)
		if want := [][2]string{{"lfs.url", download}, {"lfs.pushurl", upload}}; err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v, want %v", url, got, err, want)
		}
	}
	for url, want := range map[string]string{
		"https://host/a/b": "https://host/a/b.git/info/lfs", "https://host/a/b/": "https://host/a/b.git/info/lfs", "http://host:80/b.git": "http://host:80/b.git/info/lfs",
		"ssh://git@host/b": "ssh://git@host/b", "git@host:b": "git@host:b", "file:///b": "file:///b", dir: "file://" + filepath.ToSlash(dir),
	} {
		server("origin", url, want, want)
	}
	const url, derived = "https://host/b", "https://host/b.git/info/lfs"
	commit("refs/heads/work", "[lfs]\n\turl = https://of-a-branch\n\tpushurl = https://of-a-branch\n")
	must(t, git, "update-ref", "refs/heads/refs/remotes/origin/HEAD", "HEAD")
	must(t, git, "update-ref", "refs/tags/refs/remotes/origin/HEAD", "HEAD")
	server("origin", url, derived, derived)
	commit("refs/remotes/origin/main", "[lfs]\n\turl = https://of-the-remote\n[remote \"other\"]\n\tlfsurl = https://of-other\n")
	must(t, git, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
	commit("refs/heads/work", "[lfs]\n\turl = https://of-a-branch\n")
	server("origin", url, "https://of-the-remote", "https://of-the-remote")
	server("other", url, derived, derived)
	must(t, git, "config", "remote.origin.lfspushurl", "https://push-to")
	server("origin", url, "https://of-the-remote", "https://of-the-remote") // as git-lfs does
	must(t, git, "config", "lfs.pushurl", "https://push-to")
	server("origin", url, "https://of-the-remote", "https://push-to")
	must(t, git, "config", "lfs.url", "https://of-the-user")
	server("origin", url, "https://of-the-user", "https://push-to")
	must(t, git, "config", "--unset", "lfs.url")
	must(t, git, "config", "core.bare", "true")
	server("origin", url, "https://of-a-branch", "https://push-to") // the default branch of a mirror
}
