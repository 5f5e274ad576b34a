package tickets_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/examples/internal/lesson"
)

func TestMain(m *testing.M) { lesson.Main(m) }

// model is what the recording says: a worker whose first repair is wrong, and a reviewer who
// finds what the tests do not.
func model(t *testing.T) lesson.Model {
	edit := func(path, from, to string) lesson.Answer {
		return lesson.Answer{Tool: "code_edit", Args: map[string]any{"path": path, "search": from, "replace": to}}
	}
	read := func(path string) lesson.Answer {
		return lesson.Answer{Tool: "fs_read", Args: map[string]any{"path": path}}
	}
	return func(a lesson.Asked) lesson.Answer {
		prompt := a.Text("user")
		var say []lesson.Answer
		switch review := strings.HasPrefix(a.Text("system"), "You review "); {
		case review && strings.Contains(prompt, `+grep -c . "$1"`):
			say = []lesson.Answer{read("count.sh"), read("test.sh"), {Text: `{"decision": "APPROVE", "score": 93, "issues": [], "feedback_for_agent": []}`}}
		case review:
			say = []lesson.Answer{read("count.sh"), {Text: `{"decision": "REQUEST_CHANGES", "score": 70,
  "issues": [{"severity": "major", "file": "count.sh", "line": 4, "category": "correctness",
    "message": "$1 is not quoted: a name with a blank is read as two files", "suggestion": "write \"$1\""}],
  "feedback_for_agent": ["Quote $1 in count.sh, so that names with blanks work.", "Add a file with a blank in its name to test.sh."]}`}}
		case strings.Contains(prompt, "Quote $1 in count.sh"):
			say = []lesson.Answer{
				edit("count.sh", "grep -c . $1", `grep -c . "$1"`),
				edit("test.sh", "want empty.txt 0 ''", "want empty.txt 0 ''\nwant 'a name.txt' 1 'one\\n'"),
				{Text: "The name is quoted, and a test has a blank in one."},
			}
		case strings.Contains(prompt, "empty.txt ended with exit code 1"):
			say = []lesson.Answer{
				edit("count.sh", "grep -c . $1", "grep -c . $1 || [ $? -eq 1 ]"),
				{Text: "grep ends with 1 if no line matches, which is right here."},
			}
		case strings.Contains(prompt, "Count only lines that are not empty"):
			say = []lesson.Answer{read("count.sh"), edit("count.sh", "grep -c '' $1", "grep -c . $1"), {Text: "Only lines with a character count now."}}
		default:
			t.Errorf("an unexpected prompt: %q", prompt)
			return lesson.Answer{Text: "I do not know."}
		}
		return say[min(a.Results(), len(say)-1)]
	}
}

// shown is what the page promises, in this order.
var shown = []string{
	"not ok: count.sh lines.txt printed 3, want 2", "it is broken",
	".sentinel/sentinels/forge-worker.json", ".sentinel/sentinels/reviewer.json", ".sentinel/sentinels/notify.json",
	"T-1  ready  Count only lines that are not empty",
	"the work waits for the approval of a person",
	"rejected", "completed",
	`+grep -c . "$1" || [ $? -eq 1 ]`, "+want 'a name.txt' 1 'one\\n'",
	"ok: a name.txt has 1",
	"the project is in",
}

// TestPage types the lines of README.md, with the recording.
func TestPage(t *testing.T) {
	needs(t)
	out, err := lesson.Script(t, "tickets.sh")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lesson.Shows(t, out, append([]string{"come from a recording"}, shown...)...)
}

// TestPageLive: with a model in the environment that one is asked, and what it says is the
// recording.
func TestPageLive(t *testing.T) {
	needs(t)
	out := lesson.ScriptCassette(t, "tickets.sh", "cassette.jsonl", model(t))
	lesson.Shows(t, out, append([]string{"your environment names is asked"}, shown...)...)
}

func needs(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("sed"); err != nil {
		t.Skip(err)
	}
}
