package logfile_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/logfile"
)

func logs(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "serve.log*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestRotation bounds the log by size and number, and tears no line.
func TestRotation(t *testing.T) {
	dir, now := t.TempDir(), time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	w, err := logfile.Open(filepath.Join(dir, "serve.log"), logfile.Options{Size: 1000, Keep: 3, Now: func() time.Time {
		now = now.Add(time.Second)
		return now
	}})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 100 {
				if _, err := fmt.Fprintf(w, "line %d of writer %d with some more text behind it\n", i, g); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	files := logs(t, dir)
	if len(files) != 4 {
		t.Fatalf("files %v, want the log and 3 rotated ones", files)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > 1000 || len(text) == 0 {
			t.Errorf("%s has %d bytes", name, len(text))
		}
		for line := range bytes.Lines(text) {
			if !bytes.HasPrefix(line, []byte("line ")) || !bytes.HasSuffix(line, []byte("behind it\n")) {
				t.Errorf("%s has a torn line %q", name, line)
			}
		}
	}
}

// TestAge removes what is old when the log is opened, and nothing that is not ours.
func TestAge(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"serve.log.20200101T000000.000000000", "serve.log.bak", "other.log.20200101T000000.000000000"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w, err := logfile.Open(filepath.Join(dir, "serve.log"), logfile.Options{Age: 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 3 {
		t.Errorf("left %v, %v; want the log and the two files of others", entries, err)
	}
	if _, err := w.Write([]byte("late")); err == nil {
		t.Error("a closed log took a line")
	}
}
