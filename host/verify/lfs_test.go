package verify_test

import (
	"os"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/internal/gitexec/gitexectest"
)

// Checks see the content of files in Git LFS, also where only the repository names its filters. The branch does
// not choose which server is asked.
func TestFilesOfLFS(t *testing.T) {
	for _, real := range []bool{false, true} {
		t.Run(map[bool]string{false: "stand-in", true: "real"}[real], func(t *testing.T) {
			t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
			t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
			settings := gitexectest.LFS(t, real)
			dir := repo(t, map[string]string{".gitattributes": "*.bin filter=lfs -text\n"})
			for _, s := range settings {
				git(t, dir, "config", s[0], s[1])
			}
			git(t, dir, "checkout", "-q", "work")
			commit(t, dir, map[string]string{"a.bin": "the content\n", ".lfsconfig": gitexectest.OtherServer(t)})
			git(t, dir, "checkout", "-q", "main")
			r, c := one(t, verifier(t), dir, `{"type":"file_exists","verify":{"path":"a.bin","contains":["the content"]}}`)
			if r.Status != "passing" {
				t.Errorf("%+v, %+v", r, c)
			}
		})
	}
}
