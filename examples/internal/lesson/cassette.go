package lesson

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/llm/cassette"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

var update = flag.Bool("update", false, "write the lessons' cassettes again")

// Cassette records a lesson against a scripted model and plays the recording in
// another workspace, where it must fit exactly. The recording must answer as
// the lesson's own cassette.jsonl does; with -update it becomes that file. It is
// skipped with -short.
func Cassette(t *testing.T, definition, shipped string, model Model, start runtime.StartOptions) {
	t.Helper()
	if testing.Short() && !*update {
		t.Skip("-short: nothing is recorded")
	}
	fresh := filepath.Join(t.TempDir(), "cassette.jsonl")
	Serve(t, model)
	h, res := Run(t, definition, Workspace(t), host.Options{Record: fresh}, start)
	if res.Status != sentinels.StatusCompleted {
		t.Fatalf("recording: %s after %d iterations: %v", res.Status, res.Iterations, res.Error)
	}
	if err := h.Close(); err != nil { // a recording is whole when its host is closed
		t.Fatal(err)
	}
	// From here on there is no model: whatever is not recorded is an error.
	t.Setenv("OPENAI_BASE_URL", "")
	t.Setenv("OPENAI_API_KEY", "")
	h, again := Run(t, definition, Workspace(t), host.Options{Replay: fresh}, start)
	NoDivergence(t, h)
	if again.Status != res.Status || again.Iterations != res.Iterations {
		t.Errorf("replayed: %s after %d iterations, recorded: %s after %d", again.Status, again.Iterations, res.Status, res.Iterations)
	}
	if *update {
		publish(t, fresh, shipped)
	}
	if diff := cmp.Diff(answers(t, shipped), answers(t, fresh)); diff != "" {
		t.Errorf("%s differs from the current answers of the test's model; -update writes it again (-shipped +now):\n%s", shipped, diff)
	}
}

// publish puts a recording in its place. It is no secret, so all may read it.
func publish(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// answers is what a cassette says: keys and durations aside, which are the
// matter of the replay.
func answers(t *testing.T, file string) []Answer {
	t.Helper()
	var out []Answer
	for _, e := range Entries(t, file) {
		if e.Reply == nil {
			t.Fatalf("%s: turn %d is an error: %v", file, e.N, e.Error)
		}
		a := Answer{Text: e.Reply.Text}
		for _, c := range e.Reply.ToolCalls {
			a.Tool += c.Name + string(c.Arguments)
		}
		out = append(out, a)
	}
	return out
}

// Entries returns the turns of a cassette.
func Entries(t *testing.T, file string) []cassette.Entry {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []cassette.Entry
	for _, line := range bytes.Split(bytes.TrimSpace(b), []byte("\n"))[1:] {
		var e cassette.Entry
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		out = append(out, e)
	}
	return out
}

// ScriptCassette runs a script of the current folder for a reader who has a model, which the
// test has written, and returns what is printed. What the script records in cassette.jsonl
// of its temporary folder must answer as the lesson's own cassette does; with -update it
// becomes that file. It is skipped with -short.
func ScriptCassette(t *testing.T, name, shipped string, model Model) string {
	t.Helper()
	Serve(t, model)
	temp := t.TempDir()
	out, err := script(t, name, "SENTINEL_DEMO=", "TMPDIR="+temp)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	found, err := filepath.Glob(filepath.Join(temp, "*", "cassette.jsonl"))
	if err != nil || len(found) != 1 {
		t.Fatalf("recordings of %s: %v, %v", name, found, err)
	}
	if *update {
		publish(t, found[0], shipped)
	}
	if diff := cmp.Diff(answers(t, shipped), answers(t, found[0])); diff != "" {
		t.Errorf("%s differs from the current answers of the test's model; -update writes it again (-shipped +now):\n%s", shipped, diff)
	}
	return out
}
