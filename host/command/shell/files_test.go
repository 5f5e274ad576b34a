//go:build unix

package shell_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/command/shell"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// TestNoFilesLeft runs in a process of its own, whose file limit it lowers.
func TestNoFilesLeft(t *testing.T) {
	const own = "SENTINEL_TEST_NO_FILES"
	if os.Getenv(own) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestNoFilesLeft$", "-test.v")
		cmd.Env = append(os.Environ(), own+"=1")
		if text, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(text), "PASS") {
			t.Fatalf("%v\n%s", err, text)
		}
		return
	}
	b := newBench(t, shell.Options{})
	b.do("code/shell/execute", params{"command": "true"}) // what is opened once is open
	held := exhaust(t)
	call := command.Call{By: command.ByStep, Run: "run-1", Key: "key-1"}
	for len(held) > 0 { // with every number of descriptors that is too small
		o, err := b.call(t.Context(), "code/shell/execute", call, params{"command": "echo once"})
		if err == nil {
			lines := b.do("code/shell/watch", params{"executionId": o.ExecutionID, "cursor": 0}).Text
			if o.Output != "once\n" || strings.Contains(lines, "started again") {
				t.Errorf("output %q, lines %q: a start that did not happen left a trace", o.Output, lines)
			}
			return
		}
		if !errors.Is(err, syscall.EMFILE) || abi.CodeOf(err) != abi.Unavailable || !strings.Contains(abi.As(err).Hint, "ulimit -n") {
			t.Fatalf("with %d descriptors held: %v (%s)", len(held), err, abi.CodeOf(err))
		}
		held[0].Close()
		held = held[1:]
	}
	t.Error("the program never started")
}

// exhaust opens files until none is left.
func exhaust(t *testing.T) (held []*os.File) {
	t.Helper()
	low := syscall.Rlimit{Cur: 64, Max: 64}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &low); err != nil {
		t.Fatal(err)
	}
	for {
		f, err := os.Open(os.DevNull)
		if errors.Is(err, syscall.EMFILE) {
			return held
		}
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, f)
	}
}
