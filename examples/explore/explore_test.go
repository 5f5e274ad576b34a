package explore_test

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
	definition = "explore-codebase.json"
	recording  = "cassette.jsonl"
	query      = "Where are passwords checked, and what happens after too many wrong ones?"
)

func TestMain(m *testing.M) { lesson.Main(m) }

func start(t *testing.T) runtime.StartOptions {
	t.Helper()
	q, err := json.Marshal(query)
	if err != nil {
		t.Fatal(err)
	}
	return runtime.StartOptions{Inputs: map[string]json.RawMessage{"query": q}}
}

// model is what the recording says: a model that stops half way at first, and
// is sent back by the condition.
func model(t *testing.T) lesson.Model {
	return func(a lesson.Asked) lesson.Answer {
		prompt := a.Text("user")
		switch first := strings.Contains(prompt, query); {
		case first && a.Results() == 0:
			return lesson.Answer{Text: "First an overview.", Tool: "code_tree"}
		case first && a.Results() == 1:
			return lesson.Answer{Tool: "code_search", Args: map[string]any{"pattern": "(?i)password", "glob": "**/*.go"}}
		case first && a.Results() == 2:
			return lesson.Answer{Tool: "code_read", Args: map[string]any{"path": "login/login.go"}}
		case first:
			return lesson.Answer{Text: findings(false, []string{"login/login.go"},
				"login.Check compares the hashes in constant time. It asks a lockout.Guard before and tells it the outcome; what that does is still open.")}
		case !strings.Contains(prompt, "Continue searching") || !strings.Contains(prompt, "still open"):
			t.Errorf("the prompt does not hold what was found: %q", prompt)
			return lesson.Answer{Text: "I do not know."}
		case a.Results() == 0:
			return lesson.Answer{Tool: "code_read", Args: map[string]any{"path": "lockout/lockout.go"}}
		}
		return lesson.Answer{Text: findings(true, []string{"login/login.go", "lockout/lockout.go"},
			"login.Check compares the hashes in constant time. The fifth failure in a row locks the account for 15 minutes (lockout.Guard.Failed); until then even the right password is refused with the same answer. The count is in memory: a restart forgets it.")}
	}
}

// findings is an answer in the form that the loop's condition looks into.
func findings(complete bool, files []string, answer string) string {
	b, err := json.MarshalIndent(struct {
		Complete bool     `json:"complete"`
		Files    []string `json:"files"`
		Answer   string   `json:"answer"`
	}{complete, files, answer}, "", "  ")
	if err != nil {
		panic(err) // plain values
	}
	return "```json\n" + string(b) + "\n```"
}

func TestDefinition(t *testing.T) { lesson.Unmodified(t, definition, "3-explore-codebase.json") }

func TestExplore(t *testing.T) {
	h, res := lesson.Run(t, definition, lesson.Workspace(t), host.Options{Replay: recording}, start(t))
	if res.Status != sentinels.StatusCompleted || res.Iterations != 1 {
		t.Fatalf("%s after %d iterations, want 1: %v", res.Status, res.Iterations, res.Error)
	}
	lesson.NoDivergence(t, h)
	var found struct {
		Complete bool
		Files    []string
	}
	if err := json.Unmarshal(res.Variables["findings"], &found); err != nil || !found.Complete || len(found.Files) != 2 {
		t.Errorf("findings = %s, %v", res.Variables["findings"], err)
	}
}

func TestScript(t *testing.T) {
	out, err := lesson.Script(t, "run.sh")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lesson.Shows(t, out, "come from a recording", "no divergence", "locks the account for 15 minutes")
}

// TestCassette records the model above and replays it.
func TestCassette(t *testing.T) {
	lesson.Cassette(t, definition, recording, model(t), start(t))
}
