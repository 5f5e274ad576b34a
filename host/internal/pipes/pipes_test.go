package pipes_test

import (
	"bytes"
	"errors"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/pipes"
)

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	return r, w
}

// TestCopyToTheDeadline: what was written before the deadline is read after it, also if no reader
// came in time and another process holds the pipe.
func TestCopyToTheDeadline(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("pipes without deadlines")
	}
	r, w := pipe(t)
	want := bytes.Repeat([]byte("x"), 40_000)
	if _, err := w.Write(want); err != nil {
		t.Fatal(err)
	}
	pipes.End(r, -time.Second)
	var got []byte
	err := pipes.Copy(r, func(p []byte) error { got = append(got, p...); return nil })
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v; want %d", len(got), err, len(want))
	}
}

func TestCopyToTheEnd(t *testing.T) {
	r, w := pipe(t)
	go func() {
		_, _ = w.WriteString("one")
		_, _ = w.WriteString("two")
		_ = w.Close()
	}()
	var got []byte
	if err := pipes.Copy(r, func(p []byte) error { got = append(got, p...); return nil }); err != nil || string(got) != "onetwo" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestCopyEndsWithItsWriter(t *testing.T) {
	r, w := pipe(t)
	if _, err := w.WriteString("one"); err != nil {
		t.Fatal(err)
	}
	full := errors.New("full")
	if err := pipes.Copy(r, func([]byte) error { return full }); !errors.Is(err, full) {
		t.Errorf("%v", err)
	}
}
