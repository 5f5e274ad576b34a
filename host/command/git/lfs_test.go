package git_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/internal/gitexec/gitexectest"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A push sends the objects of Git LFS that the branch names, or refuses before the branch is
// at the remote. The branch does not choose which server gets or has them.
func TestPushSendsObjectsOfLFS(t *testing.T) {
	for _, real := range []bool{false, true} {
		t.Run(map[bool]string{false: "stand-in", true: "real"}[real], func(t *testing.T) {
			b := newBench(t)
			settings := gitexectest.LFS(t, real)
			b.t = t
			b.repo()
			for _, s := range settings {
				b.raw(b.dir, "config", s[0], s[1])
			}
			bare := filepath.Join(t.TempDir(), "bare.git")
			b.raw(b.dir, "init", "-q", "--bare", bare)
			b.raw(b.dir, "remote", "add", "origin", bare)
			b.put(".gitattributes", "*.bin filter=lfs -text\n")
			b.put("a.bin", "content\n")
			b.put(".lfsconfig", gitexectest.OtherServer(t))
			b.do(params{"operation": "add", "paths": []string{"."}})
			b.do(params{"operation": "commit", "message": "m"})
			if got := b.raw(b.dir, "cat-file", "-p", "HEAD:a.bin"); !strings.Contains(got, "oid sha256:") {
				t.Fatalf("committed %q", got)
			}
			t.Run("without git-lfs", func(t *testing.T) {
				gitexectest.WithoutLFS(t)
				_, err := b.try(params{"operation": "push"})
				if e := abi.As(err); e == nil || e.Code != abi.Denied || !strings.Contains(e.Message+e.Hint, "git-lfs") {
					t.Errorf("got %v", err)
				}
				if refs := b.raw(bare, "for-each-ref"); refs != "" {
					t.Errorf("the remote has %s", refs)
				}
			})
			if r := b.do(params{"operation": "push"}); !*r.Pushed {
				t.Errorf("got %+v", r)
			}
			if have := gitexectest.LFSObjects(t, bare); len(have) != 1 {
				t.Errorf("the remote has the objects %v", have)
			}
			for _, path := range []string{"a.bin", ".git/lfs"} {
				if err := os.RemoveAll(filepath.Join(b.dir, path)); err != nil {
					t.Fatal(err)
				}
			}
			_, err := b.try(params{"operation": "checkout", "paths": []string{"a.bin"}})
			have, _ := os.ReadFile(filepath.Join(b.dir, "a.bin"))
			if real && (err != nil || string(have) != "content\n") || !real && err == nil { // the stand-in asks no remote
				t.Errorf("checked out %q, %v", have, err)
			}
		})
	}
}
