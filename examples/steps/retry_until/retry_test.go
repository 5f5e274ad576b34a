package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/examples/internal/lesson"
	"github.com/sentinel-runtime/sentinel/sdk/sdktest"
)

func TestMain(m *testing.M) { lesson.Main(m) }

func TestManifest(t *testing.T) { sdktest.Manifest(t, plugin) }

func TestPauses(t *testing.T) {
	p := plan{delay: 100, maxDelay: 1000, factor: 2}
	for made, want := range []int64{0, 100, 200, 400, 800, 1000, 1000} {
		if got := p.pause(int64(made)); got != want {
			t.Errorf("after %d attempts: %d ms, want %d", made, got, want)
		}
	}
	if got := (plan{delay: 5000, maxDelay: 1000, factor: 1}).pause(100_000); got != 1000 {
		t.Errorf("a delay above the longest: %d", got)
	}
}

func TestCases(t *testing.T) { lesson.Cases(t, ".", lesson.Module(t, ".")) }

func TestCasesNative(t *testing.T) { sdktest.Cases(t, plugin, sdktest.CasesFile) }

// event is one line of `run -o jsonl`.
type event struct {
	Event     string          `json:"event"`
	Run       string          `json:"run"`
	Status    string          `json:"status"`
	Function  string          `json:"function"`
	Variables json.RawMessage `json:"variables"`
}

// TestKilledWhileItWaits ends the process with SIGKILL in the pause after the
// second attempt. Resumed, the run makes the third one next: what was
// recorded is not made again, and the attempts are counted on.
func TestKilledWhileItWaits(t *testing.T) {
	dir := t.TempDir()
	lesson.Drop(t, dir, "retry_until", lesson.Module(t, "."))
	definition := `{
		"name": "probe",
		"steps": [{"type": "retry_until", "delayMs": 1500, "factor": 1, "until": "$result.output.exitCode === 0", "outputTo": "service",
			"steps": [{"type": "shell", "command": "echo attempt >> attempts; test -e ready", "allowFailure": true}]}]
	}`
	file := filepath.Join(dir, "probe.json")
	if err := os.WriteFile(file, []byte(definition), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := lesson.Command(t, dir, "run", file, "-o", "jsonl")
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	attempts := func() int {
		text, err := os.ReadFile(filepath.Join(dir, "attempts"))
		if err != nil {
			return 0
		}
		return strings.Count(string(text), "attempt\n")
	}
	run, seen := "", 0
	for lines := bufio.NewScanner(out); seen < 2 && lines.Scan(); {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("%v: %s", err, lines.Bytes())
		}
		run = e.Run
		if e.Event == "call.start" && e.Function == "sentinel_wait" {
			seen++
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if seen != 2 || attempts() != 2 {
		t.Fatalf("%d pauses began, %d attempts were made\n%s", seen, attempts(), &said)
	}
	if err := os.WriteFile(filepath.Join(dir, "ready"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	res, err := lesson.Command(t, dir, "run", "--resume", run, "-o", "json").Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr(err))
	}
	var end event
	if err := json.Unmarshal(res, &end); err != nil {
		t.Fatal(err)
	}
	if end.Status != "completed" || !strings.Contains(string(end.Variables), `"attempts": 3`) && !strings.Contains(string(end.Variables), `"attempts":3`) {
		t.Errorf("%s %s", end.Status, end.Variables)
	}
	if attempts() != 3 {
		t.Errorf("%d attempts were made, want 3", attempts())
	}
}

// TestSentinel carries the sentinel of the folder out.
func TestSentinel(t *testing.T) {
	dir := t.TempDir()
	lesson.Drop(t, dir, "retry_until", lesson.Module(t, "."))
	text, err := os.ReadFile("retry_until.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "retry_until.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	probe := `echo x >> tries; test $(wc -l < tries) -eq 3`
	res, err := lesson.Command(t, dir, "run", "retry_until.json", "-o", "json", "--input", "probe="+probe).Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr(err))
	}
	var end event
	if err := json.Unmarshal(res, &end); err != nil {
		t.Fatal(err)
	}
	var variables struct {
		Service struct{ Attempts int }
	}
	if err := json.Unmarshal(end.Variables, &variables); err != nil {
		t.Fatal(err)
	}
	if end.Status != "completed" || variables.Service.Attempts != 3 {
		t.Errorf("%s %s", end.Status, end.Variables)
	}
}

func stderr(err error) []byte {
	if e, ok := err.(*exec.ExitError); ok {
		return e.Stderr
	}
	return nil
}
