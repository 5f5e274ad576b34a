package atomicfile_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/internal/atomicfile"
)

// TestReplace checks that concurrent readers and writers find the complete content
// of one write, that a link is not followed, and that no temporary file is left.
func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path, other := filepath.Join(dir, "file"), filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, path); err != nil {
		t.Skipf("no symbolic links on this system: %v", err)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			content := make([]byte, 64<<10)
			for j := range content {
				content[j] = byte('a' + i)
			}
			if err := atomicfile.Replace(path, content, 0o600); err != nil {
				t.Error(err)
			}
			got, err := os.ReadFile(path)
			if err != nil || len(got) != len(content) || got[0] != got[len(got)-1] {
				t.Errorf("read %d bytes from %q to %q: %v", len(got), got[:1], got[len(got)-1:], err)
			}
		})
	}
	wg.Wait()
	if text, err := os.ReadFile(other); err != nil || string(text) != "other" {
		t.Errorf("the file behind the link is %q: %v", text, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v: %v", info.Mode(), err)
	}
	if err := atomicfile.Replace(filepath.Join(dir, "missing", "file"), nil, 0o600); err == nil {
		t.Error("no error for a missing folder")
	}
}
