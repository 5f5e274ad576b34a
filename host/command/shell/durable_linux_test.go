package shell_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/command/shell"
)

// inPipes is what a kill may lose besides the line that has not ended: what a pipe holds, and what was
// read of it and is being stored, in bytes.
const inPipes = 2*64<<10 + 32<<10

// TestOutputSurvivesAKill kills a host while a command prints without end, after it has printed so many
// lines. What was stored is read by the next host, in order and without gaps that are not said.
func TestOutputSurvivesAKill(t *testing.T) {
	for _, lines := range []int{1, 20_000, 300_000} {
		dir, work := t.TempDir(), t.TempDir()
		killedHost(t, dir, work, fmt.Sprintf("echo started; seq 1 %d; echo ready > ready; exec seq %d 1000000000", lines, lines+1), nil)
		b := newBench(t, shell.Options{Dir: dir})
		left, err := b.m.Recover(t.Context())
		if err != nil || len(left) != 1 {
			t.Fatalf("%+v, %v", left, err)
		}
		text := b.read(left[0].ID, shell.OutputOptions{}, 0)
		if !strings.HasPrefix(text, "started\n") || !strings.HasSuffix(text, "\n[the host stopped while this ran: output may be missing, the exit code is not known]\n") {
			t.Fatalf("%.100q ... %q", text, text[max(len(text)-200, 0):])
		}
		next := 1
		list := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		for i, line := range list[1 : len(list)-1] {
			var n int
			if _, err := fmt.Sscanf(line, "[%d lines of output are not kept: ", &n); err == nil {
				next += n
				continue
			}
			// The kill may have come during a write: then the last line has not ended.
			begun, message, _ := strings.Cut(line, "[")
			if message != "" {
				_, err := fmt.Sscanf(message, "%d bytes of output are missing here: the host was stopped while it stored them]", &n)
				if err != nil || n <= 0 || i != len(list)-3 || !strings.HasPrefix(fmt.Sprint(next), begun) {
					t.Fatalf("line %q where %d is expected, %v", line, next, err)
				}
				continue
			}
			if line != fmt.Sprint(next) {
				t.Fatalf("line %q where %d is expected, %d lines before the end", line, next, len(list)-i)
			}
			next++
		}
		printed := 0
		for i := range lines {
			printed += len(fmt.Sprintln(i + 1))
		}
		if printed > inPipes && len(text) < printed-inPipes {
			t.Errorf("%d bytes are kept of at least %d", len(text), printed)
		}
		last := b.read(left[0].ID, shell.OutputOptions{Tail: 2}, 0)
		if !strings.HasSuffix(text, last) || strings.Count(last, "\n") != 2 {
			t.Errorf("the last two lines are %q", last)
		}
	}
}

// TestOutputOnAFullDisk runs in a process of its own, whose files it keeps from growing. The command
// continues to its end, one warning says that its output cannot be kept, and the output how much of it.
func TestOutputOnAFullDisk(t *testing.T) {
	const own = "SENTINEL_TEST_FULL_DISK"
	if os.Getenv(own) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestOutputOnAFullDisk$", "-test.v")
		cmd.Env = append(os.Environ(), own+"=1")
		if text, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(text), "PASS") {
			t.Fatalf("%v\n%s", err, text)
		}
		return
	}
	var log bytes.Buffer
	b := newBench(t, shell.Options{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	id := b.do("code/shell/execute", params{"command": "seq 1 1000; until [ -e go ]; do sleep 0.02; done; seq 1001 50000; exit 3", "wait": false}).ExecutionID
	until := func(pattern string) {
		b.do("code/shell/watch", params{"executionId": id, "cursor": 0, "until": "match", "rules": []shell.Rule{{Pattern: pattern}, {Pattern: ".", Action: "suppress"}}})
	}
	until("^1000$")
	var all syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &all); err != nil {
		t.Fatal(err)
	}
	limit := all
	limit.Cur = uint64(size(t, filepath.Join(b.m.Dir(), id+".0.out")))
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	end := b.do("code/shell/watch", params{"executionId": id, "cursor": 1000})
	if !end.Finished || end.ExitCode == nil || *end.ExitCode != 3 || len(end.Lines)+end.Dropped != 49000 {
		t.Errorf("finished %v, exit code %v, %d lines and %d dropped", end.Finished, end.ExitCode, len(end.Lines), end.Dropped)
	}
	text := b.read(id, shell.OutputOptions{}, 0)
	if !strings.HasPrefix(text, "1\n2\n") || !strings.Contains(text, "\n1000\n") || !regexp.MustCompile(`\n\[\d+ lines of output are not kept: \d+ bytes\]\n$`).MatchString(text) {
		t.Errorf("%.20q ... %q", text, text[max(len(text)-100, 0):])
	}
	if n := strings.Count(log.String(), "output cannot be kept"); n != 1 {
		t.Errorf("%d warnings: %s", n, log.String())
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &all); err != nil {
		t.Fatal(err)
	}
	o, err := b.call(t.Context(), "code/shell/execute", command.Call{}, params{"command": "seq 1 2000"})
	if err != nil || !strings.HasSuffix(o.Output, "\n2000\n") || o.Dropped != 0 {
		t.Errorf("with free space: %d dropped, %v", o.Dropped, err)
	}
}
