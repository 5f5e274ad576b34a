package statefolder_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime/internal/maintenance/statefolder"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// newFolder creates a state folder with n pairs and closes it.
func newFolder(t *testing.T, n int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	db, err := store.Open(t.Context(), dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		put := store.Put{Bucket: "things", Key: fmt.Appendf(nil, "%05d", i), Value: []byte(strings.Repeat("x", 500))}
		if err := db.Enqueue(store.Batch{Puts: []store.Put{put}}).Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// damage clears all but the first pages of the store.
func damage(t *testing.T, dir string) {
	t.Helper()
	file := filepath.Join(dir, "store.db")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	clear(b[4096*3:])
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A check finds damage and changes nothing.
func TestCheck(t *testing.T) {
	if err := statefolder.Check(t.TempDir()); err != nil {
		t.Errorf("an empty folder: %v", err)
	}
	dir := newFolder(t, 50)
	if err := statefolder.Check(dir); err != nil {
		t.Errorf("a sound store: %v", err)
	}
	damage(t, dir)
	before, err := os.ReadFile(filepath.Join(dir, "store.db"))
	if err != nil {
		t.Fatal(err)
	}
	err = statefolder.Check(dir)
	if e := abi.As(err); !errors.Is(err, store.ErrDamaged) || e == nil || !strings.Contains(e.Hint, "sentinel recover") {
		t.Errorf("a damaged store: %v", err)
	}
	if after, err := os.ReadFile(filepath.Join(dir, "store.db")); err != nil || string(after) != string(before) {
		t.Errorf("the file was changed, %v", err)
	}
}

// A store that is open is neither opened nor checked, and the error names the
// process.
func TestHeld(t *testing.T) {
	dir := t.TempDir()
	db, err := statefolder.Open(t.Context(), dir, "", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	_, second := statefolder.Open(t.Context(), dir, "", slog.New(slog.DiscardHandler))
	for what, err := range map[string]error{"open": second, "check": statefolder.Check(dir)} {
		if !errors.Is(err, statefolder.ErrHeld) || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if s, err := statefolder.Inspect(dir); err != nil || !s.Held || s.Holder != os.Getpid() || s.Closed {
		t.Errorf("inspect: %+v, %v", s, err)
	}
}

// Every error of the store that an operator can do something about has a code and
// a hint.
func TestError(t *testing.T) {
	if err := statefolder.Error("d", nil); err != nil {
		t.Errorf("no error: %v", err)
	}
	if err := statefolder.Error("d", &store.HeldError{}); !errors.Is(err, statefolder.ErrHeld) || strings.Contains(err.Error(), "process 0") {
		t.Errorf("held by an unknown process: %v", err)
	}
	for text, tt := range map[string]struct {
		err  error
		code abi.Code
	}{
		"is damaged: page 4, and 2 more places": {&store.DamagedError{Path: "d/store.db", Count: 3, Places: []string{"page 4", "page 5"}}, abi.Internal},
		"cannot be written to":                  {syscall.EROFS, abi.Denied},
		"make a new store":                      {syscall.ENOSPC, abi.Unavailable},
	} {
		err := statefolder.Error("d", tt.err)
		if e := abi.As(err); e == nil || e.Code != tt.code || e.Hint == "" || !strings.Contains(e.Message, text) {
			t.Errorf("%v: %v", tt.err, err)
		}
	}
	cause := errors.New("cause")
	if err := statefolder.Error("d", cause); !errors.Is(err, cause) || abi.As(err) != nil {
		t.Errorf("another error: %v", err)
	}
}

// The mark is what the operator sets, or a part of the disk.
func TestLowWater(t *testing.T) {
	for _, tt := range []struct{ total, minFree, want int64 }{
		{1 << 40, 0, 64 << 20}, {1 << 30, 0, 1 << 30 / 100}, {1 << 40, 5, 5}, {1 << 40, -1, 0},
	} {
		if got := statefolder.LowWater(store.Disk{Total: tt.total}, tt.minFree); got != tt.want {
			t.Errorf("%+v: %d", tt, got)
		}
	}
	for n, want := range map[int64]string{-1: "unknown", 10: "10 bytes", 20 << 10: "20 KiB", 20 << 20: "20 MiB"} {
		if got := statefolder.FormatBytes(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
