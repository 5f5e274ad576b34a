package codereview_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/examples/internal/lesson"
	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

const (
	definition = "code-review.json"
	recording  = "cassette.jsonl"
)

var push = runtime.StartOptions{Event: &sentinels.Event{Name: "git:push"}}

func TestMain(m *testing.M) { lesson.Main(m) }

// model is what the recording says.
func model(t *testing.T) lesson.Model {
	return func(a lesson.Asked) lesson.Answer {
		if p := a.Text("user"); !strings.Contains(p, "-	defer rows.Close()") || !strings.Contains(p, "+	query := fmt.Sprintf(") {
			t.Errorf("the prompt does not hold the change: %q", p)
		}
		return lesson.Answer{Text: strings.Join([]string{
			"Three things must change before this goes in.",
			"",
			"1. Security, accounts.go:19: prefix is pasted into the SQL text, so a caller can run any query. Pass it as a parameter, as before; limit too.",
			"2. Bug, accounts.go:24: defer rows.Close() is gone. When Scan fails, the connection never returns to the pool.",
			"3. Bug, accounts.go:32: rows.Err() is no longer looked at. A connection that breaks half way gives a short list and no error.",
			"",
			"Style: % and _ in prefix now act as wildcards, which the comment does not say.",
		}, "\n")}
	}
}

func TestDefinition(t *testing.T) { lesson.Unmodified(t, definition, "2-code-review.json") }

func TestReview(t *testing.T) {
	h, res := lesson.Run(t, definition, lesson.Workspace(t), host.Options{Replay: recording}, push)
	if res.Status != sentinels.StatusCompleted {
		t.Fatalf("%s: %v", res.Status, res.Error)
	}
	lesson.NoDivergence(t, h)
	out, err := h.Call(t.Context(), "collaboration/chat/history", json.RawMessage(`{"room":"general"}`))
	if err != nil {
		t.Fatal(err)
	}
	lesson.Shows(t, string(out), "Three things must change", "defer rows.Close() is gone")
}

func TestScript(t *testing.T) {
	out, err := lesson.Script(t, "run.sh")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lesson.Shows(t, out, "come from a recording", "no divergence", "-\tdefer rows.Close()", "Three things must change")
}

// TestCassette records the model above and replays it.
func TestCassette(t *testing.T) {
	lesson.Cassette(t, definition, recording, model(t), push)
}
