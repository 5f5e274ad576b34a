package host

import (
	"bytes"
	"log/slog"
	"os"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime"
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
