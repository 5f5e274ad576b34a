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

// TestOwners: who writes most loses its own oldest lines, and no other does. The files are
// as few as they may be, in order and without torn lines.
func TestOwners(t *testing.T) {
	dir, now := t.TempDir(), time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	opt := logfile.Options{
		Size: 1000, Keep: 4, Now: func() time.Time { now = now.Add(time.Second); return now },
		Owner: func(line []byte) string { return string(line[:bytes.IndexByte(line, ' ')]) },
	}
	open := func() *logfile.Writer {
		t.Helper()
		w, err := logfile.Open(filepath.Join(dir, "serve.log"), opt)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	w, n := open(), 0
	write := func(owner string) {
		t.Helper()
		n++
		if _, err := fmt.Fprintf(w, "%s %06d and some more text behind it\n", owner, n); err != nil {
			t.Fatal(err)
		}
	}
	// read returns how many lines each owner has, and the number of the first.
	read := func() (count, first map[string]int) {
		t.Helper()
		names, last := logs(t, dir), 0
		count, first = map[string]int{}, map[string]int{}
		if len(names) > 2*opt.Keep+2 {
			t.Errorf("%d files: %q", len(names), names)
		}
		total := 0
		for _, name := range append(names[1:], names[0]) { // the one without a time is the newest
			text, err := os.ReadFile(name)
			if err != nil || len(text) == 0 || len(text) > int(opt.Size) {
				t.Fatalf("%s: %d bytes, %v", name, len(text), err)
			}
			total += len(text)
			for line := range bytes.Lines(text) {
				var owner string
				var at int
				if _, err := fmt.Sscanf(string(line), "%s %d and some more text behind it\n", &owner, &at); err != nil || at <= last {
					t.Fatalf("%s: %q after %d: %v", name, line, last, err)
				}
				if count[owner]++; first[owner] == 0 {
					first[owner] = at
				}
				last = at
			}
		}
		if total > int(opt.Size)*(opt.Keep+1) {
			t.Errorf("%d bytes", total)
		}
		return count, first
	}
	write("ann")
	for range 5000 {
		write("ci")
		if n%500 == 0 {
			write("ann")
			write("bob")
		}
	}
	count, first := read()
	if count["ann"] != 11 || first["ann"] != 1 || count["bob"] != 10 || count["ci"] < 20 || first["ci"] < 4000 {
		t.Errorf("one writes much: %v, first %v", count, first)
	}
	// After a restart, and with two that write much: they have equal parts.
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	w = open()
	defer w.Close()
	for range 500 {
		write("ci")
		write("bot")
	}
	count, _ = read()
	if count["ann"] != 11 || count["bob"] != 10 || count["ci"] < 20 || count["bot"] < 20 {
		t.Errorf("two write much: %v", count)
	}
	// By age all go.
	opt.Age, now = time.Hour, now.Add(2*time.Hour)
	w2 := open()
	defer w2.Close()
	if names := logs(t, dir); len(names) != 1 {
		t.Errorf("after their time: %q", names)
	}
}
