package host

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// TestRunLogAfterKill expects that a line which a kill cut off costs no other.
func TestRunLogAfterKill(t *testing.T) {
	l := openRunLogs(t.TempDir(), slog.New(slog.DiscardHandler))
	l.write(runtime.Progress{Run: "r", Event: runtime.OnRunStart})
	l.close()
	whole, err := os.ReadFile(l.path("r"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(l.path("r"), int64(len(whole)-5)); err != nil {
		t.Fatal(err)
	}
	for _, event := range []runtime.ProgressKind{runtime.OnStatus, runtime.OnStepStart} {
		l.write(runtime.Progress{Run: "r", Event: event})
		l.close()
	}
	text, err := os.ReadFile(l.path("r"))
	if err != nil {
		t.Fatal(err)
	}
	if lines := bytes.SplitAfter(text, []byte("\n")); len(lines) != 4 || !bytes.Equal(lines[0], append(whole[:len(whole)-5:len(whole)-5], '\n')) {
		t.Errorf("the log is now %q", text)
	}
}

// TestRunLogIsBounded expects the beginning and the end of a long log, and
// exactly how much is missing between, also over several cuts and a restart.
func TestRunLogIsBounded(t *testing.T) {
	dir := t.TempDir()
	bounds := logBounds{most: 8 << 10, head: 3 << 10, tail: 2 << 10}
	l := openRunLogs(dir, slog.New(slog.DiscardHandler))
	l.bounds = bounds
	var told int64
	const lines = 500
	for i := range lines {
		p := runtime.Progress{Run: "r", Event: runtime.OnLog, Message: fmt.Sprintf("line %d", i)}
		line, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		told += int64(len(line)) + 1
		l.write(p)
		if i%170 == 0 {
			l.close()
			l = openRunLogs(dir, slog.New(slog.DiscardHandler))
			l.bounds = bounds
		}
	}
	l.close()
	text, err := os.ReadFile(l.path("r"))
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(text)) > bounds.most {
		t.Errorf("the log has %d bytes, more than %d", len(text), bounds.most)
	}
	var kept, gaps int64
	var gap logGap
	next := 0
	for line := range bytes.Lines(text) {
		if g, ok := readGap(line); ok {
			gap, gaps, next = g, gaps+1, next+int(g.Lines)
			continue
		}
		var p runtime.Progress
		if err := json.Unmarshal(line, &p); err != nil || p.Message != fmt.Sprintf("line %d", next) {
			t.Fatalf("line %d is %s (%v)", next, line, err)
		}
		next++
		kept += int64(len(line))
	}
	if next != lines || gaps != 1 || kept+gap.Bytes != told {
		t.Errorf("%d lines, %d gaps, %d bytes kept and %d left out; want %d, 1, and %d in all", next, gaps, kept, gap.Bytes, lines, told)
	}
}

// TestRunLogSweep expects logs of unknown runs to go, and of those that are over
// the oldest.
func TestRunLogSweep(t *testing.T) {
	l := openRunLogs(t.TempDir(), slog.New(slog.DiscardHandler))
	l.bounds.all = 500
	for i, run := range []sentinels.RunID{"unknown", "old", "on", "new"} {
		l.write(runtime.Progress{Run: run, Event: runtime.OnLog, Message: strings.Repeat("x", 300)})
		at := time.Now().Add(time.Duration(i-10) * time.Hour)
		if err := os.Chtimes(l.path(run), at, at); err != nil {
			t.Fatal(err)
		}
	}
	err := l.sweep(func(run sentinels.RunID) (loggedRun, error) {
		return loggedRun{found: run != "unknown", over: run != "on"}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	entries, err := os.ReadDir(l.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if diff := cmp.Diff([]string{"new.jsonl", "on.jsonl"}, left); diff != "" {
		t.Error(diff)
	}
	l.write(runtime.Progress{Run: "old", Event: runtime.OnLog}) // its file was open when it was removed
	if text, err := os.ReadFile(l.path("old")); err != nil || len(text) == 0 {
		t.Errorf("a line after the sweep: %q, %v", text, err)
	}
	l.close()
}

// TestRunLogsOfPersonsStay expects the logs of an agent's runs to go before the older ones of a person,
// which are less than half of what logs may take.
func TestRunLogsOfPersonsStay(t *testing.T) {
	l := openRunLogs(t.TempDir(), slog.New(slog.DiscardHandler))
	defer l.close()
	l.bounds.all = 2000
	for i, run := range []sentinels.RunID{"person-1", "person-2", "other-1", "ci-1", "ci-2", "ci-3", "ci-4"} {
		l.write(runtime.Progress{Run: run, Event: runtime.OnLog, Message: strings.Repeat("x", 300)})
		at := time.Now().Add(time.Duration(i-10) * time.Hour)
		if err := os.Chtimes(l.path(run), at, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.sweep(func(run sentinels.RunID) (loggedRun, error) {
		owner, _, _ := strings.Cut(string(run), "-")
		return loggedRun{found: true, over: true, owner: strings.TrimPrefix(owner, "person")}, nil
	}); err != nil {
		t.Fatal(err)
	}
	var left []string
	entries, err := os.ReadDir(l.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if diff := cmp.Diff([]string{"ci-3.jsonl", "ci-4.jsonl", "other-1.jsonl", "person-1.jsonl", "person-2.jsonl"}, left); diff != "" {
		t.Error(diff)
	}
}

// TestLogLineOfLargeOutput: a line has the output of a step whatever its size, and a large one as it is.
func TestLogLineOfLargeOutput(t *testing.T) {
	text := strings.Repeat(`a \"text\" <b> é `, largeOutput/10)
	for name, output := range map[string]string{
		"small": `{"text":"a <b>"}`, "large": `{"text":"` + text + `"}`, "large text": `"` + text + `"`,
		"with space": `{"text": "` + text + `"}`, "with lines": "{\n\"text\":\"" + text + "\"\n}",
	} {
		want := runtime.Progress{Run: "r", Event: runtime.OnStepEnd, Address: "0", Time: time.Unix(1, 0).UTC(), Output: json.RawMessage(output)}
		line, err := logLine(want)
		if err != nil || bytes.IndexByte(line, '\n') != len(line)-1 {
			t.Fatalf("%s: %v, not one line: %.100q", name, err, line)
		}
		if as := bytes.Contains(line, []byte(output)); as != strings.HasPrefix(name, "large") {
			t.Errorf("%s: the output is in the line as it is: %t", name, as)
		}
		var got runtime.Progress
		if err := json.Unmarshal(line, &got); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !strictjson.Equal(got.Output, want.Output) {
			t.Errorf("%s: the output is %.200s", name, got.Output)
		}
		got.Output, want.Output = nil, nil
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
