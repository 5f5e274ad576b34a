package run

import (
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
)

// TestOutputCannotBeHeading: on a terminal, no line that a program prints begins where headings do.
func TestOutputCannotBeHeading(t *testing.T) {
	for attempt, want := range map[int]string{0: "  ==> #1 0 shell\n  [exit code 1]\n", 1: "==> #1 0 shell\n[exit code 1]\n"} {
		var out strings.Builder
		v := &outputView{app: verbs{&app.App{Out: output.Printer{Writer: &out}}}, want: outputWanted{step: "0", attempt: attempt}}
		if err := v.toTerminal(strings.NewReader("==> #1 0 shell\n[exit code 1]")); err != nil || out.String() != want {
			t.Errorf("attempt %d: %q, %v, want %q", attempt, out.String(), err, want)
		}
	}
}

// A line of a log is an event with a name, or none.
func FuzzReadEvent(f *testing.F) {
	f.Add([]byte(`{"event":"step.end","run":"r","durationMs":1.5,"error":{"code":"internal","message":"m"}}`))
	f.Add([]byte(`{"event":""}`))
	f.Add([]byte(`{"event":"x","time":"yesterday"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		if e, ok := readEvent(line); ok && e.Event == "" {
			t.Fatalf("%q is an event without a name", line)
		}
	})
}
