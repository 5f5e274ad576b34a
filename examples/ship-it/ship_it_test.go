package shipit_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/examples/internal/lesson"
	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

const definition = "ship-it.json"

func TestMain(m *testing.M) { lesson.Main(m) }

func TestDefinition(t *testing.T) { lesson.Unmodified(t, definition, "4-ship-it.json") }

// TestShip: what is green reaches the remote, what is red does not, and either
// way one event says so.
func TestShip(t *testing.T) {
	for _, c := range []struct {
		kind, event, newest string
	}{
		{"green", "sentinel:deployed", "Change the greeting"},
		{"red", "sentinel:test-failure", "Begin"},
	} {
		t.Run(c.kind, func(t *testing.T) {
			ws := lesson.Workspace(t, c.kind)
			h, res := lesson.Run(t, definition, ws, host.Options{}, runtime.StartOptions{})
			if res.Status != sentinels.StatusCompleted {
				t.Fatalf("%s: %v", res.Status, res.Error)
			}
			remote := filepath.Join(filepath.Dir(ws), "remote.git")
			if got := lesson.Git(t, remote, "log", "-1", "--format=%s", "main"); got != c.newest {
				t.Errorf("the newest commit of the remote is %q, want %q; testResult = %s", got, c.newest, res.Variables["testResult"])
			}
			events, err := h.Runtime().Events("sentinel:*", 10)
			if err != nil || len(events) != 1 || events[0].Name != c.event {
				t.Errorf("events %+v, %v; want one %s", events, err, c.event)
			}
		})
	}
}

func TestScript(t *testing.T) {
	out, err := lesson.Script(t, "run.sh")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lesson.Shows(t, out, "sentinel:deployed", "sentinel:test-failure")
	green, red, ok := strings.Cut(out, "== red: the commit")
	if !ok {
		t.Fatalf("no red part:\n%s", out)
	}
	_, remote, _ := strings.Cut(green, "== green: what the remote has now")
	lesson.Shows(t, remote, "Change the greeting", "Begin")
	_, remote, _ = strings.Cut(red, "== red: what the remote has now")
	if remote, _, _ = strings.Cut(remote, "=="); strings.Contains(remote, "Change") || !strings.Contains(remote, "Begin") {
		t.Errorf("red reached the remote:\n%s", remote)
	}
}
