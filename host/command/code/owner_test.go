//go:build unix

package code_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/command/code"
)

// TestKeepsOwnerAndMode checks that a file which is edited or written keeps its owner and all
// bits of its mode.
func TestKeepsOwnerAndMode(t *testing.T) {
	b := newHarness(t, code.Options{}, map[string]string{"edited": "old", "written": "old"})
	uid, gid := os.Getuid(), os.Getgid()
	if uid == 0 {
		uid, gid = 1234, 4321
	}
	for _, name := range []string{"edited", "written"} {
		full := filepath.Join(b.dir, name)
		if err := os.Chown(full, uid, gid); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(full, 0o755|os.ModeSetgid); err != nil {
			t.Fatal(err)
		}
	}
	b.do("code/edit", params{"path": "edited", "old": "old", "new": "new"})
	b.do("code/write", params{"path": "written", "content": "new"})
	for _, name := range []string{"edited", "written"} {
		info, err := os.Stat(filepath.Join(b.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		s := info.Sys().(*syscall.Stat_t)
		if info.Mode() != 0o755|os.ModeSetgid || int(s.Uid) != uid || int(s.Gid) != gid || b.get(name) != "new" {
			t.Errorf("%s: %v %d:%d %q", name, info.Mode(), s.Uid, s.Gid, b.get(name))
		}
	}
}
