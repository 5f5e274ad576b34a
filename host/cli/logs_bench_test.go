//go:build unix

package cli_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// BenchmarkLogs reads the output of a step that printed 60 MB, of which the half is kept, beside cat of
// a file with the same bytes: from the store, and through the control socket of a process that serves.
// first-ms is the time to the first bytes, of-cat the rate from there on in parts of that of cat.
func BenchmarkLogs(b *testing.B) {
	dir := b.TempDir()
	program := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(name, args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_CACHE_HOME="+dir)
		return cmd
	}
	if err := os.Mkdir(filepath.Join(dir, ".sentinel"), 0o700); err != nil {
		b.Fatal(err)
	}
	run := program("sentinel", "-q", "run", "-")
	run.Stdin = strings.NewReader(`{"id": "big", "steps": [{"type": "shell", "command": "seq 1 7700000"}]}`)
	if text, err := run.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, text)
	}
	list, err := program("sentinel", "-q", "-o", "json", "list").Output()
	if err != nil {
		b.Fatal(err)
	}
	var page struct{ Runs []struct{ ID string } }
	if err := json.Unmarshal(list, &page); err != nil || len(page.Runs) != 1 {
		b.Fatalf("%v: %s", err, list)
	}
	id := page.Runs[0].ID
	kept, err := program("sentinel", "-q", "logs", id).Output()
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "kept"), kept, 0o600); err != nil {
		b.Fatal(err)
	}
	// read returns the time to the first bytes, and from there to the last.
	read := func(b *testing.B, cmd *exec.Cmd) (first, rest time.Duration) {
		b.Helper()
		begin := time.Now()
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			b.Fatal(err)
		}
		buffer, size := make([]byte, 64<<10), 0
		for {
			n, err := out.Read(buffer)
			if size == 0 {
				first = time.Since(begin)
			}
			size += n
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				b.Fatal(err)
			}
		}
		rest = time.Since(begin) - first
		if err := cmd.Wait(); err != nil || size != len(kept) {
			b.Fatalf("%d of %d bytes, %v", size, len(kept), err)
		}
		return first, rest
	}
	measure := func(b *testing.B) {
		var first, rest, cat time.Duration
		for b.Loop() {
			f, r := read(b, program("sentinel", "-q", "logs", id))
			_, c := read(b, program("cat", "kept"))
			first, rest, cat = first+f, rest+r, cat+c
		}
		b.ReportMetric(float64(first.Milliseconds())/float64(b.N), "first-ms")
		b.ReportMetric(float64(len(kept))*float64(b.N)/1e6/rest.Seconds(), "MB/s")
		b.ReportMetric(cat.Seconds()/rest.Seconds(), "of-cat")
	}
	b.Run("store", measure)
	server := program("sentinel", "serve", "--listen", "none")
	log, err := server.StderrPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := errors.Join(server.Process.Signal(syscall.SIGTERM), server.Wait()); err != nil {
			b.Error(err)
		}
	}()
	lines := bufio.NewReader(log)
	for line := ""; !strings.Contains(line, "msg=serving"); {
		if line, err = lines.ReadString('\n'); err != nil {
			b.Fatal(err)
		}
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	b.Run("served", measure)
}
