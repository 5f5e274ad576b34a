//go:build unix

package regularfile_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/internal/regularfile"
)

// within fails the test if fn does not return. The limit is far above what any
// machine takes.
func within(t *testing.T, fn func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); fn() }()
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		t.Fatal("it hangs")
	}
}

func TestOnlyRegularFilesAreOpened(t *testing.T) {
	dir := t.TempDir()
	file, pipe := filepath.Join(dir, "file"), filepath.Join(dir, "pipe")
	if err := os.WriteFile(file, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"to-file": file, "to-pipe": pipe, "to-nothing": "nothing"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	short := t.TempDir() // the path of a socket has at most 108 bytes
	if len(short) > 90 {
		short = "/tmp"
	}
	socket, err := net.Listen("unix", filepath.Join(short, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	for _, c := range []struct {
		path string
		want error  // nil: it is read
		part string // of the error
	}{
		{file, nil, ""}, {filepath.Join(dir, "to-file"), nil, ""},
		{pipe, regularfile.ErrKind, "a named pipe"}, {filepath.Join(dir, "to-pipe"), regularfile.ErrKind, "a named pipe"},
		{dir, regularfile.ErrKind, "a folder"}, {os.DevNull, regularfile.ErrKind, "a device"}, {"/dev/zero", regularfile.ErrKind, "a device"},
		{socket.Addr().String(), regularfile.ErrKind, "a socket"},
		{filepath.Join(dir, "missing"), fs.ErrNotExist, "missing"}, {filepath.Join(dir, "to-nothing"), fs.ErrNotExist, "to-nothing"},
	} {
		within(t, func() {
			b, err := regularfile.Read(c.path, 100)
			switch {
			case c.want == nil && (err != nil || string(b) != "content"):
				t.Errorf("%s: got %q, %v", c.path, b, err)
			case c.want != nil && (!errors.Is(err, c.want) || !strings.Contains(err.Error(), c.part) || !strings.Contains(err.Error(), c.path)):
				t.Errorf("%s: got %v, want %v and %q", c.path, err, c.want, c.part)
			}
		})
	}
}

func TestReadHasALimit(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := regularfile.Read(file, 5); err != nil || string(b) != "12345" {
		t.Errorf("at the limit: %q, %v", b, err)
	}
	if _, err := regularfile.Read(file, 4); !errors.Is(err, regularfile.ErrSize) || !strings.Contains(err.Error(), "more than 4 bytes") {
		t.Errorf("above the limit: %v", err)
	}
}

// TestListTakesNamesAsTheyAre: a bracket in the name of a folder is not a pattern.
func TestListTakesNamesAsTheyAre(t *testing.T) {
	for _, name := range []string{"plain", "a[b", "a[b]c", "*", "?", `back\slash`} {
		dir := filepath.Join(t.TempDir(), name)
		if err := os.MkdirAll(filepath.Join(dir, "folder.json"), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{"b.jsonc", "b.json", "a[.json", "c.txt"} {
			if err := os.WriteFile(filepath.Join(dir, file), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := syscall.Mkfifo(filepath.Join(dir, "pipe.json"), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := regularfile.List(dir, ".json", ".jsonc")
		var want []string
		for _, file := range []string{"a[.json", "b.json", "pipe.json", "b.jsonc"} {
			want = append(want, filepath.Join(dir, file))
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: got %q, %v", name, got, err)
		}
	}
	if got, err := regularfile.List(filepath.Join(t.TempDir(), "missing"), ".json"); err != nil || len(got) > 0 {
		t.Errorf("no folder: %q, %v", got, err)
	}
}
