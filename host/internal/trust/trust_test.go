//go:build unix

package trust_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/internal/trust"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// other is a user and a group that no test runs as.
const other = 54321

// tree makes files below a folder of its own; names that end with a slash are
// folders. Everything is this user's alone.
func tree(t testing.TB, names ...string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		if strings.HasSuffix(name, "/") {
			err = os.MkdirAll(path, 0o755)
		} else {
			err = os.WriteFile(path, []byte("content"), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// chown gives a file to another user or group, -1 for the same. Only root can.
func chown(t *testing.T, path string, uid, gid int) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can give files to other users; the cases with modes run all the same")
	}
	if err := os.Lchown(path, uid, gid); err != nil {
		t.Fatal(err)
	}
}

func policy(t *testing.T, opt trust.Options) *trust.Policy {
	t.Helper()
	p, err := trust.New(opt)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// refused checks that a path is not trusted because of another one, and that the hint
// mends it: the test types it into a shell.
func refused(t *testing.T, p *trust.Policy, path, cause string) {
	t.Helper()
	err := p.Check(path)
	e := abi.As(err)
	if e == nil || e.Code != abi.Denied || !strings.Contains(e.Message, fmt.Sprintf("%q", cause)) {
		t.Errorf("%s: got %v, want a refusal because of %s", path, err, cause)
		return
	}
	if _, _, err := p.Open(path); err == nil {
		t.Errorf("%s: it was opened", path)
	}
	mend, _, ok := strings.Cut(e.Hint, "; or,")
	if !ok || !strings.Contains(e.Hint, "--trust ") {
		t.Fatalf("%s: the hint is %q", path, e.Hint)
	}
	trusted, err := trust.New(trust.Options{Paths: []string{cause}})
	if err != nil {
		t.Fatal(err)
	}
	if err := trusted.Check(path); err != nil {
		t.Errorf("%s: with --trust %s: %v", path, cause, err)
	}
	if out, err := exec.Command("sh", "-c", mend).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", mend, err, out)
	}
	if err := p.Check(path); err != nil {
		t.Errorf("%s: after %s: %v", path, mend, err)
	}
}

func TestOwnFilesAreTrusted(t *testing.T) {
	dir := tree(t, "a/", "a/b/", "a/b/file")
	var none *trust.Policy
	for _, path := range []string{"a/b/file", "a/b", "a", ".", "a/b/missing", "missing/too"} {
		if err := none.Check(filepath.Join(dir, path)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	if b, err := none.Read(filepath.Join(dir, "a/b/file"), 100); err != nil || string(b) != "content" {
		t.Errorf("read %q, %v", b, err)
	}
}

func TestWhatOthersMayWriteIsRefused(t *testing.T) {
	for _, c := range []struct{ name, path string }{
		{"file", "it's a/b c/file"}, {"its folder", "it's a/b c"}, {"a folder above", "it's a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := tree(t, "it's a/", "it's a/b c/", "it's a/b c/file")
			cause := filepath.Join(dir, c.path)
			chmod(t, cause, 0o777)
			refused(t, policy(t, trust.Options{}), filepath.Join(dir, "it's a/b c/file"), cause)
		})
	}
}

func TestWhatOthersOwnIsRefused(t *testing.T) {
	for _, c := range []struct{ name, path string }{{"file", "a/b/file"}, {"its folder", "a/b"}, {"a folder above", "a"}} {
		t.Run(c.name, func(t *testing.T) {
			dir := tree(t, "a/", "a/b/", "a/b/file")
			cause := filepath.Join(dir, c.path)
			chown(t, cause, other, -1)
			refused(t, policy(t, trust.Options{}), filepath.Join(dir, "a/b/file"), cause)
		})
	}
}

// TestGroups: the group of this process may write, others only where they are
// configured.
func TestGroups(t *testing.T) {
	dir := tree(t, "a/", "a/file")
	file := filepath.Join(dir, "a/file")
	if err := os.Chown(file, -1, os.Getegid()); err != nil { // some systems take the folder's group
		t.Fatal(err)
	}
	chmod(t, file, 0o660)
	var none *trust.Policy
	if err := none.Check(file); err != nil {
		t.Errorf("the own group: %v", err)
	}
	chown(t, file, -1, other)
	chmod(t, file, 0o660)
	if err := policy(t, trust.Options{Groups: []string{fmt.Sprint(other)}}).Check(file); err != nil {
		t.Errorf("a configured group: %v", err)
	}
	refused(t, none, file, file)
}

// TestSticky: in a sticky folder each user can replace only what is their own, so it
// may stand above a file; but it is not trusted itself, for others may put files there.
func TestSticky(t *testing.T) {
	dir := tree(t, "tmp/", "tmp/own/", "tmp/own/file")
	tmp := filepath.Join(dir, "tmp")
	chmod(t, tmp, 0o777|os.ModeSticky)
	var none *trust.Policy
	if err := none.Check(filepath.Join(tmp, "own/file")); err != nil {
		t.Errorf("below a sticky folder: %v", err)
	}
	if err := none.Check(tmp); abi.CodeOf(err) != abi.Denied {
		t.Errorf("the sticky folder itself: got %v, want denied", err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink("tmp/own/..", link); err != nil {
		t.Fatal(err)
	}
	if err := none.Check(link); abi.CodeOf(err) != abi.Denied {
		t.Errorf("the sticky folder by another name: got %v, want denied", err)
	}
	chown(t, filepath.Join(tmp, "own"), other, -1)
	if err := none.Check(filepath.Join(tmp, "own/file")); abi.CodeOf(err) != abi.Denied {
		t.Errorf("a folder of another user in a sticky one: got %v, want denied", err)
	}
}

// TestLinks: a link is as good as the folders that it is in and leads through.
func TestLinks(t *testing.T) {
	dir := tree(t, "good/", "good/file", "bad/", "bad/file", "bad/inner/", "bad/inner/file", "deep/", "deep/er/")
	chmod(t, filepath.Join(dir, "bad"), 0o777)
	links := map[string]string{
		"to-good": "good/file", "to-bad": "bad/file", "bad/to-good": filepath.Join(dir, "good/file"), "deep/er/up": "../../bad/inner",
		"through": "deep/er/up/../../good/file", "loop": "loop", "nowhere": "nothing", "bad/here": ".", "good/here": ".", "bad/above": "..",
	}
	for link, target := range links {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	var none *trust.Policy
	for path, trusted := range map[string]bool{
		"to-good": true, "nowhere": true, "to-bad": false, "bad/to-good": false, "deep/er/up/file": false, "through": false, "loop": false, "bad/here": false, "good/here": true, "bad/above": false,
	} {
		if err := none.Check(filepath.Join(dir, path)); (err == nil) != trusted {
			t.Errorf("%s: got %v, want trusted: %v", path, err, trusted)
		}
	}
	p := policy(t, trust.Options{Paths: []string{filepath.Join(dir, "bad")}})
	for _, path := range []string{"to-bad", "bad/to-good", "deep/er/up/file", "bad/inner/file"} {
		if err := p.Check(filepath.Join(dir, path)); err != nil {
			t.Errorf("%s, which leads to a trusted path: %v", path, err)
		}
	}
}

// TestTrustedPaths: what is below a trusted path passes, and what only begins like it
// does not.
func TestTrustedPaths(t *testing.T) {
	dir := tree(t, "mount/", "mount/a/", "mount/a/file", "mount2/", "mount2/file")
	for _, name := range []string{"mount", "mount/a", "mount/a/file", "mount2"} {
		chmod(t, filepath.Join(dir, name), 0o777)
	}
	if err := os.Symlink("mount", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, given := range []string{"mount", "link", "mount/", "mount/a/.."} {
		p := policy(t, trust.Options{Paths: []string{dir + "/" + given}})
		if b, err := p.Read(filepath.Join(dir, "mount/a/file"), 100); err != nil || string(b) != "content" {
			t.Errorf("%s: read %q, %v", given, b, err)
		}
		if err := p.Check(filepath.Join(dir, "mount2/file")); abi.CodeOf(err) != abi.Denied {
			t.Errorf("%s: a path beside it: got %v, want denied", given, err)
		}
	}
	if err := policy(t, trust.Options{Paths: []string{"/"}}).Check(filepath.Join(dir, "mount2/file")); err != nil {
		t.Errorf("everything is trusted: %v", err)
	}
	if _, err := trust.New(trust.Options{Paths: []string{"mount", "/fine", "../x"}, Groups: []string{"no such group"}}); err == nil ||
		!strings.Contains(err.Error(), `"mount"`) || !strings.Contains(err.Error(), `"../x"`) || !strings.Contains(err.Error(), `"no such group"`) {
		t.Errorf("got %v", err)
	}
}

// TestCheckFolder finds what others put into a folder, also after it was closed to
// them.
func TestCheckFolder(t *testing.T) {
	dir := tree(t, "state/", "state/store.db", "state/token", "state/blobs/")
	state := filepath.Join(dir, "state")
	var none *trust.Policy
	if err := none.CheckFolder(state); err != nil {
		t.Error(err)
	}
	if err := none.CheckFolder(filepath.Join(dir, "missing")); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"token", "blobs"} {
		path := filepath.Join(state, name)
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		chmod(t, path, 0o666)
		if err := none.CheckFolder(state); abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v", name, err)
		}
		chmod(t, path, info.Mode().Perm())
	}
	chown(t, filepath.Join(state, "token"), other, -1)
	if err := none.CheckFolder(state); abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), "54321") {
		t.Errorf("got %v", err)
	}
}

func TestOpenRefusesPipes(t *testing.T) {
	dir := tree(t)
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	var none *trust.Policy
	if _, err := none.Read(pipe, 100); err == nil || !strings.Contains(err.Error(), "named pipe") {
		t.Errorf("got %v", err)
	}
}
