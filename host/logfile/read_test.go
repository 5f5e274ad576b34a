package logfile_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/logfile"
)

// numbered writes lines with consecutive numbers into a log that is rotated after three of them.
type numbered struct {
	*logfile.Writer
	last int
}

func openNumbered(t *testing.T, path string) *numbered {
	t.Helper()
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	w, err := logfile.Open(path, logfile.Options{Size: 30, Keep: 100, Now: func() time.Time {
		now = now.Add(time.Second)
		return now
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return &numbered{Writer: w}
}

func (n *numbered) write(t *testing.T, lines int) {
	t.Helper()
	for range lines {
		n.last++
		if _, err := fmt.Fprintln(n, line(n.last)); err != nil {
			t.Fatal(err)
		}
	}
}

func line(n int) string { return fmt.Sprintf("line %04d", n) }

// lines are those from first to last.
func lines(first, last int) (list []string) {
	for n := first; n <= last; n++ {
		list = append(list, line(n))
	}
	return list
}

func TestReadTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "serve.log")
	w := openNumbered(t, path)
	w.write(t, 10)
	for tail, want := range map[int][]string{0: lines(1, 10), 1: lines(10, 10), 3: lines(8, 10), 4: lines(7, 10), 99: lines(1, 10), -1: nil} {
		var got []string
		err := logfile.Read(t.Context(), path, logfile.ReadOptions{Tail: tail}, func(line []byte) error {
			got = append(got, string(line))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("tail %d:\n%s", tail, diff)
		}
	}
}

// A reader that is slower than the log is rotated misses no line.
func TestReadFollowsRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "serve.log")
	w := openNumbered(t, path)
	w.write(t, 2)
	ctx, cancel := context.WithCancelCause(t.Context())
	interrupted := errors.New("interrupted")
	var got []string
	err := logfile.Read(ctx, path, logfile.ReadOptions{Tail: 1, Follow: true}, func(text []byte) error {
		got = append(got, string(text))
		switch string(text) {
		case line(2):
			w.write(t, 20) // six rotations before it reads on
		case line(22):
			w.write(t, 1)
		case line(23):
			if _, err := fmt.Fprint(w, "half"); err != nil {
				t.Error(err)
			}
			cancel(interrupted)
		}
		return nil
	})
	if !errors.Is(err, interrupted) {
		t.Errorf("error %v, want the cause of the context", err)
	}
	if got = slices.DeleteFunc(got, func(s string) bool { return s == "half" }); !cmp.Equal(lines(2, 23), got) {
		t.Error(cmp.Diff(lines(2, 23), got))
	}
}

// Another program may empty the file in place of renaming it.
func TestReadFollowsEmptiedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "serve.log")
	if err := os.WriteFile(path, []byte("one\ntwo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	done := errors.New("done")
	var got []string
	err := logfile.Read(t.Context(), path, logfile.ReadOptions{Follow: true}, func(text []byte) error {
		got = append(got, string(text))
		switch string(text) {
		case "two":
			return os.WriteFile(path, []byte("three\n"), 0o600)
		case "three":
			return done
		}
		return nil
	})
	if diff := cmp.Diff([]string{"one", "two", "three"}, got); diff != "" || !errors.Is(err, done) {
		t.Errorf("%v\n%s", err, diff)
	}
}
