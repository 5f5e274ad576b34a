//go:build unix

package shell_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/command/shell"
)

// TestOutputIsReported: what a command of a run prints is reported while it is executed, its end before the
// call returns, and what was left out is said.
func TestOutputIsReported(t *testing.T) {
	var mu sync.Mutex
	var told []shell.Printed
	news := make(chan struct{}, 1000)
	b := newBench(t, shell.Options{Printed: func(p shell.Printed) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, p)
		news <- struct{}{}
	}})
	done := make(chan error, 1)
	go func() {
		_, err := b.call(t.Context(), "code/shell/execute", command.Call{By: command.ByStep, Run: "r", Root: "top", Path: "0", Iteration: 3, Attempt: 2, Key: "k"},
			params{"command": "echo first; until [ -e go ]; do sleep 0.02; done; seq 1 20000; printf '\\033[31mlast'"})
		done <- err
	}()
	<-news // while it is executed
	b.do("code/shell/execute", params{"command": "touch go"})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	var all strings.Builder
	for _, p := range told {
		if p.Run == "r" {
			all.WriteString(p.Text)
			if p.Root != "top" || p.Path != "0" || p.Iteration != 3 || p.Attempt != 2 || len(p.Text) > 8<<10 {
				t.Errorf("%+v", p)
			}
		}
	}
	if text := all.String(); !strings.HasPrefix(text, "first\n") || !strings.HasSuffix(text, "\n20000\nlast") || !strings.Contains(text, " bytes are left out here]\n") {
		t.Errorf("%.100s ... %s", text, text[max(len(text)-100, 0):])
	}
}

// TestLongLineIsReportedInPart: the report of a line without an end is as short as any, and says how many
// bytes it leaves out.
func TestLongLineIsReportedInPart(t *testing.T) {
	var mu sync.Mutex
	var reports []shell.Printed
	b := newBench(t, shell.Options{Printed: func(p shell.Printed) {
		mu.Lock()
		defer mu.Unlock()
		reports = append(reports, p)
	}})
	if _, err := b.call(t.Context(), "code/shell/execute", command.Call{By: command.ByStep, Run: "r", Key: "k"},
		params{"command": "head -c 1000000 /dev/zero | tr '\\0' a; printf '\\303\\244end'"}); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	var last string
	left, printed := 0, 0
	for _, p := range reports {
		last = p.Text
		if len(p.Text) > 5<<10 {
			t.Errorf("%d bytes are reported at a time", len(p.Text))
		}
		var n int
		text := p.Text
		if _, err := fmt.Sscanf(text, "[%d bytes are left out here]", &n); err == nil {
			_, text, _ = strings.Cut(text, "\n")
		}
		left, printed = left+n, printed+len(text)
	}
	if left+printed != 1_000_005 || !strings.HasSuffix(last, "a\u00e4end") {
		t.Errorf("%d bytes left out and %d printed, at the end %q", left, printed, last[max(len(last)-20, 0):])
	}
}
