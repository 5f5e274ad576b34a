package trash_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/trash"
)

// folder makes a folder with files, one of them in a folder that cannot be written. What a
// test leaves of it is deleted at its end.
func folder(t *testing.T, path string) {
	t.Helper()
	closed := filepath.Join(path, "inner", "closed")
	t.Cleanup(func() { _ = os.Chmod(closed, 0o700) })
	if err := os.MkdirAll(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(closed, "file"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(closed, 0o500); err != nil {
		t.Fatal(err)
	}
}

func gone(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", path, err)
	}
}

func TestRemove(t *testing.T) {
	dir := t.TempDir()
	bin := trash.Bin{Dir: filepath.Join(dir, "removed")}
	var removing sync.WaitGroup
	for _, name := range []string{"a", "b", "c"} {
		path := filepath.Join(dir, name)
		folder(t, path)
		removing.Go(func() {
			if err := bin.Remove(path); err != nil {
				t.Error(err)
			}
		})
	}
	removing.Wait()
	for _, name := range []string{"a", "b", "c"} {
		gone(t, filepath.Join(dir, name))
	}
	bin.Close()
	gone(t, bin.Dir)
	if err := bin.Remove(filepath.Join(dir, "a")); err != nil {
		t.Errorf("a folder that is not there: %v", err)
	}
}

// A bin that cannot be made does not keep a folder from being removed.
func TestRemoveWithoutBin(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	bin := trash.Bin{Dir: filepath.Join(dir, "file", "removed")}
	folder(t, filepath.Join(dir, "a"))
	if err := bin.Remove(filepath.Join(dir, "a")); err != nil {
		t.Error(err)
	}
	gone(t, filepath.Join(dir, "a"))
}

// What an earlier process has not deleted is deleted with the next folder, or on request.
func TestLeftovers(t *testing.T) {
	dir := t.TempDir()
	var bin *trash.Bin
	for name, empty := range map[string]func() error{
		"next folder": func() error {
			folder(t, filepath.Join(dir, "a"))
			return bin.Remove(filepath.Join(dir, "a"))
		},
		"request": func() error { return bin.Empty(t.Context()) },
		"nothing": func() error { return bin.Empty(t.Context()) },
	} {
		bin = &trash.Bin{Dir: filepath.Join(dir, "removed")} // of another process
		if name != "nothing" {
			folder(t, filepath.Join(bin.Dir, "left"))
		}
		if err := empty(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		bin.Close()
		gone(t, bin.Dir)
	}
}

// What cannot be deleted is logged and tried again without another call. Here the bin
// cannot be listed at first.
func TestRetry(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		file := filepath.Join(dir, "file")
		bin := trash.Bin{Dir: filepath.Join(file, "removed"), Logger: slog.New(slog.NewTextHandler(&log, nil))}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		folder(t, filepath.Join(dir, "a"))
		if err := bin.Remove(filepath.Join(dir, "a")); err != nil {
			t.Error(err)
		}
		gone(t, filepath.Join(dir, "a"))
		synctest.Wait()
		if got := strings.Count(log.String(), "level=WARN"); got != 1 || !strings.Contains(log.String(), "retry=1m0s") {
			t.Errorf("logged %d times: %s", got, log.String())
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		folder(t, filepath.Join(bin.Dir, "left"))
		time.Sleep(time.Minute)
		synctest.Wait()
		gone(t, bin.Dir)
		bin.Close()
	})
}
