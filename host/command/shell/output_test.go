//go:build unix

package shell_test

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/command/shell"
	"github.com/sentinel-runtime/sentinel/host/redact"
)

// read returns what of an output there is.
func (b *bench) read(id string, opt shell.OutputOptions, skip int64) string {
	b.t.Helper()
	o, err := b.m.OpenOutput(b.t.Context(), &command.Call{By: command.ByUser}, id, opt)
	if err != nil {
		b.t.Fatal(err)
	}
	defer o.Close()
	size := o.Size()
	if err := o.Skip(skip); err != nil {
		b.t.Fatal(err)
	}
	text, err := io.ReadAll(o)
	if err != nil {
		b.t.Fatal(err)
	}
	if opt.Tail == 0 && !opt.Times && int64(len(text)) != max(size-skip, 0) {
		b.t.Errorf("%d bytes behind %d, and the size is %d", len(text), skip, size)
	}
	return string(text)
}

// TestOutputHasTheBytes: what a program writes is read as it was written, whatever it is.
func TestOutputHasTheBytes(t *testing.T) {
	b := newBench(t, shell.Options{})
	const want = "one\r\n\xff\xfe\x00 10%\r20%\n\x1b[31mred\x1b[0m\n\nlast"
	id := b.do("code/shell/execute", params{"argv": []string{"printf", `one\r\n\377\376\000 10%%\r20%%\n\033[31mred\033[0m\n\nlast`}}).ExecutionID
	if got := b.read(id, shell.OutputOptions{}, 0); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for skip := range int64(len(want) + 2) {
		if got := b.read(id, shell.OutputOptions{}, skip); got != want[min(int(skip), len(want)):] {
			t.Errorf("behind %d: %q", skip, got)
		}
	}
	long := strings.Repeat("0123456789", 10_000)
	id = b.do("code/shell/execute", params{"command": "cat", "stdin": long + "\n" + long}).ExecutionID
	if got := b.read(id, shell.OutputOptions{}, 0); got != long+"\n"+long {
		t.Errorf("long lines: %d bytes", len(got))
	}
}

// TestOutputOfStreams: one stream, the last lines, and a part of it are what they are of the whole.
func TestOutputOfStreams(t *testing.T) {
	b := newBench(t, shell.Options{})
	id := b.do("code/shell/execute", params{"command": "i=0; while [ $i -lt 1000 ]; do echo out $i; echo problem $i >&2; i=$((i+1)); done"}).ExecutionID
	var out, problems strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&out, "out %d\n", i)
		fmt.Fprintf(&problems, "problem %d\n", i)
	}
	for stream, want := range map[string]string{"stdout": out.String(), "stderr": problems.String()} {
		for _, skip := range []int64{0, 1, 1000, 5000, int64(len(want)) - 3, int64(len(want))} {
			if got := b.read(id, shell.OutputOptions{Stream: stream}, skip); got != want[skip:] {
				t.Errorf("%s behind %d: %d bytes, want %d", stream, skip, len(got), len(want)-int(skip))
			}
		}
		for _, tail := range []int{1, 3, 127, 128, 129, 999, 1000, 5000} {
			lines := strings.SplitAfter(want, "\n")
			last := strings.Join(lines[max(len(lines)-1-tail, 0):], "")
			if got := b.read(id, shell.OutputOptions{Stream: stream, Tail: tail}, 0); got != last {
				t.Errorf("the last %d of %s: %q, want %q", tail, stream, got, last)
			}
		}
	}
	if got := b.read(id, shell.OutputOptions{}, 0); len(got) != out.Len()+problems.Len() {
		t.Errorf("both have %d bytes", len(got))
	}
	for line := range strings.Lines(b.read(id, shell.OutputOptions{Times: true, Tail: 10}, 0)) {
		if len(line) < 25 || line[10] != 'T' || line[23] != 'Z' {
			t.Errorf("%q has no time", line)
		}
	}
}

// TestOutputIsFollowed: each byte comes once, also those that are written while it is read.
func TestOutputIsFollowed(t *testing.T) {
	b := newBench(t, shell.Options{})
	id := b.do("code/shell/execute", params{"command": "i=0; while [ $i -lt 300 ]; do echo line $i; i=$((i+1)); [ $((i%50)) -gt 0 ] || sleep 0.02; done; printf end", "wait": false}).ExecutionID
	o, err := b.m.OpenOutput(t.Context(), &command.Call{By: command.ByUser}, id, shell.OutputOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	var got strings.Builder
	for more := true; more; {
		if _, err := io.Copy(&got, o); err != nil {
			t.Fatal(err)
		}
		if more, err = o.Follow(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var want strings.Builder
	for i := range 300 {
		fmt.Fprintf(&want, "line %d\n", i)
	}
	if got.String() != want.String()+"end" {
		t.Errorf("%d bytes, want %d", got.Len(), want.Len()+3)
	}
}

// TestOutputSaysWhatIsNotKept: a line stands where lines were dropped, and has their number and bytes.
func TestOutputSaysWhatIsNotKept(t *testing.T) {
	b := newBench(t, shell.Options{MaxOutput: 64 << 10})
	id := b.do("code/shell/execute", params{"command": "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done"}).ExecutionID
	text := b.read(id, shell.OutputOptions{}, 0)
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	kept, gaps, dropped := 0, 0, 0
	written, bytes := 0, 0
	for i := range 20000 {
		written += len(fmt.Sprintf("line %d\n", i))
	}
	for _, line := range lines {
		var n, size int
		if _, err := fmt.Sscanf(line, "[%d lines of output are not kept: %d bytes]", &n, &size); err == nil {
			gaps, dropped, bytes = gaps+1, dropped+n, bytes+size
			continue
		}
		kept++
		bytes += len(line) + 1
	}
	if bytes != written {
		t.Errorf("%d bytes are kept or said to be dropped, want %d", bytes, written)
	}
	if gaps != 1 || kept+dropped != 20000 || lines[0] != "line 0" || lines[len(lines)-1] != "line 19999" {
		t.Errorf("%d lines, %d not kept, %d gaps", kept, dropped, gaps)
	}
	size := int64(len(text)) // it depends on how much was read at a time
	for _, skip := range []int64{1, size / 3, size / 2, size - 1} {
		if got := b.read(id, shell.OutputOptions{}, skip); got != text[skip:] {
			t.Errorf("behind %d: %d bytes, want %d", skip, len(got), len(text)-int(skip))
		}
	}
}

// TestOutputHasNoSecrets: also where control characters are in the middle of one.
func TestOutputHasNoSecrets(t *testing.T) {
	r := new(redact.Redactor)
	if err := r.Register("S3cr3tValue0123456789"); err != nil {
		t.Fatal(err)
	}
	b := newBench(t, shell.Options{Redact: r})
	id := b.do("code/shell/execute", params{"command": `printf 'a S3cr3tVal'; sleep 0.05; printf 'ue0123456789 \033[1mb\033[0m\nS3cr3t\033[1mVal\000ue0123456789\n'`}).ExecutionID
	if got := b.read(id, shell.OutputOptions{}, 0); got != "a "+redact.Mark+" \x1b[1mb\x1b[0m\n"+redact.Mark+"\n" {
		t.Errorf("%q", got)
	}
}

// TestAttemptsHaveTheirOwnOutput: and the later one ends what the one before has left running.
func TestAttemptsHaveTheirOwnOutput(t *testing.T) {
	b := newBench(t, shell.Options{})
	first, err := b.call(t.Context(), "code/shell/execute", command.Call{Run: "r", Key: "k", Path: "1", Iteration: 2, Attempt: 1}, params{"command": "echo one; sleep 600", "wait": false})
	if err != nil {
		t.Fatal(err)
	}
	second, err := b.call(t.Context(), "code/shell/execute", command.Call{Run: "r", Key: "k", Path: "1", Iteration: 2, Attempt: 2}, params{"command": "echo two"})
	if err != nil || first.ExecutionID == second.ExecutionID {
		t.Fatalf("%s and %s, %v", first.ExecutionID, second.ExecutionID, err)
	}
	if got := b.read(second.ExecutionID, shell.OutputOptions{}, 0); got != "two\n" {
		t.Errorf("%q", got)
	}
	end := b.do("code/shell/watch", params{"executionId": first.ExecutionID})
	if !end.Finished || end.Signal == "" {
		t.Errorf("the first attempt: %+v", end)
	}
}

// BenchmarkOutput executes commands that print much and little, with secrets to remove. Each is beside
// the same command that prints into a file, whose processor time is one in the ratio: user and system
// time of this process, of the command and of what supervises it.
func BenchmarkOutput(b *testing.B) {
	for _, bm := range []struct {
		name, line string
		calls      int // of the line in one operation
	}{
		{"60MB", "seq 1 7700000", 1},
		{"60MB-of-both", "seq 1 3850000 & seq 1 3850000 >&2; wait", 1},
		{"60MB-in-color", "seq -f '\x1b[32m%.0f\x1b[0m' 1 3000000", 1},
		{"1MB", "seq 1 150000", 10},
		{"line", "echo hello", 100},
		{"lines-one-by-one", "for i in 1 2 3 4 5 6 7 8 9 10; do echo $i; done", 100},
	} {
		b.Run(bm.name, func(b *testing.B) {
			r := new(redact.Redactor)
			if err := r.Register("S3cr3tValue0123456789", "another-secret/of+the=environment"); err != nil {
				b.Fatal(err)
			}
			var kept, file time.Duration
			dir := b.TempDir()
			for b.Loop() {
				kept += processorTime(b, r, dir, bm.line, bm.calls)
				file += processorTime(b, r, dir, "{ "+bm.line+"; } > out 2>&1", bm.calls)
			}
			n := float64(b.N * bm.calls)
			b.ReportMetric(kept.Seconds()*1000/n, "cpu-ms/call")
			b.ReportMetric(file.Seconds()*1000/n, "file-cpu-ms/call")
			b.ReportMetric(kept.Seconds()/file.Seconds(), "ratio")
		})
	}
}

// processorTime executes a line so many times, and returns the processor time of it.
func processorTime(b *testing.B, r *redact.Redactor, dir, line string, calls int) time.Duration {
	b.Helper()
	before := usage(b)
	m, err := shell.New(shell.Options{Dir: b.TempDir(), Redact: r})
	if err != nil {
		b.Fatal(err)
	}
	reg, err := command.NewRegistry(shell.Commands(m)...)
	if err != nil {
		b.Fatal(err)
	}
	params, err := json.Marshal(params{"command": line})
	if err != nil {
		b.Fatal(err)
	}
	for range calls {
		if _, err := reg.Call(b.Context(), &command.Call{Command: "code/shell/execute", Params: params, By: command.ByUser, Workspace: dir}); err != nil {
			b.Fatal(err)
		}
	}
	if err := m.Close(); err != nil { // ends the supervisor, so that its time and that of the command count
		b.Fatal(err)
	}
	return usage(b) - before
}

// usage returns the processor time of this process and of its children that have ended.
func usage(b *testing.B) (sum time.Duration) {
	b.Helper()
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return sum
}
