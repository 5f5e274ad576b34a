//go:build unix

package shell_test

import (
	"path/filepath"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/command/shell"
)

// TestFoldersWithPatternsInTheirNames: neither the state folder nor the workspace
// is a pattern, also where it looks like one.
func TestFoldersWithPatternsInTheirNames(t *testing.T) {
	for _, name := range []string{"a[b", "a[b]c", "a*"} {
		dir := filepath.Join(t.TempDir(), name)
		b := newBench(t, shell.Options{Dir: dir})
		id := b.do("code/shell/execute", params{"command": "echo kept"}).ExecutionID
		if err := b.m.Close(); err != nil {
			t.Fatal(err)
		}
		again := newBench(t, shell.Options{Dir: dir}) // reads what is on disk
		if o := again.do("code/shell/watch", params{"executionId": id, "cursor": 0}); len(o.Lines) != 1 || o.Lines[0].Text != "kept" {
			t.Errorf("%q: got %+v", name, o)
		}
	}
}
