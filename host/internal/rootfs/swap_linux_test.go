package rootfs_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sentinel-runtime/sentinel/host/internal/rootfs"
)

// TestSwappedFolders: a folder that is exchanged with a link all the time leads no write or removal to files
// that a rule forbids, and none out of the tree.
func TestSwappedFolders(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "tree")
	put := func(name string) {
		t.Helper()
		name = filepath.Join(top, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte("as before"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for _, kind := range []string{"tree/w/d", "tree/w/closed", "outside"} {
		put(kind + "/file")
		put(kind + "/removed")
		put(kind + "/sub/file")
	}
	for name, target := range map[string]string{"a": "closed", "b": "../../outside"} {
		if err := os.Symlink(target, filepath.Join(dir, "w", name)); err != nil {
			t.Fatal(err)
		}
	}
	stop := make(chan struct{})
	var swapper sync.WaitGroup
	swapper.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				other := filepath.Join(dir, "w", []string{"a", "a", "b", "b"}[i%4]) // to and back
				_ = unix.Renameat2(unix.AT_FDCWD, filepath.Join(dir, "w/d"), unix.AT_FDCWD, other, unix.RENAME_EXCHANGE)
			}
		}
	})
	wrote := 0
	for i := range 2000 {
		tree, err := rootfs.Open(dir, rootfs.Rules{Write: func(name string) error {
			if strings.HasPrefix(name, "w/closed/") {
				return errors.New("closed")
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		name, remove := "w/d/file", i%3 == 0
		switch {
		case remove:
			name = "w/d/removed"
		case i%3 == 1:
			name = fmt.Sprint("w/d/sub/new", i, "/file")
		}
		if p, err := tree.Resolve(name, true); err == nil {
			if remove {
				err = tree.Remove(p)
			} else {
				_, err = tree.WriteFile(p, []byte("written"))
			}
			if err == nil {
				wrote++
			}
			p.Close()
		}
		_ = tree.Close()
	}
	close(stop)
	swapper.Wait()
	if wrote == 0 {
		t.Error("nothing was written")
	}
	for _, kind := range []string{"tree/w/closed", "outside"} {
		err := filepath.WalkDir(filepath.Join(top, kind), func(path string, e os.DirEntry, err error) error {
			if err != nil || e.IsDir() && !strings.HasPrefix(e.Name(), "new") {
				return err
			}
			if text, err := os.ReadFile(path); err != nil || string(text) != "as before" {
				t.Errorf("%s: %q %v", path, text, err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		for _, name := range []string{"file", "removed", "sub/file"} {
			if _, err := os.Lstat(filepath.Join(top, kind, name)); err != nil {
				t.Error(err)
			}
		}
	}
}
