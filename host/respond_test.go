package host_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// respond is the recipe of spec 002: "[rag/build] → $ragContext →
// [ai/should-respond] → $decision → [ai/generate]".
func respond(onError string) string {
	return `{"name": "pair", "pipeline": [
		{"command": "rag/build", "outputTo": "ragContext"},
		{"command": "ai/should-respond", "params": {"ragContext": "$ragContext", "message": "Reviewer, please look."}, ` + onError + `"outputTo": "decision"},
		{"command": "ai/generate", "params": {"ragContext": "$ragContext"}, "condition": "decision.shouldRespond === true", "outputTo": "answer"}
	]}`
}

const yes = `{"shouldRespond": true, "confidence": 0.9, "reason": "asked by name"}`

// verdicts answers the requests of ai/should-respond with the texts one after the other,
// and those of ai/generate with a text.
func verdicts(t *testing.T, texts ...string) (s *modelServer, generated func() int) {
	t.Helper()
	n := 0
	s = newModelServer(t, func(r chatRequest) answer {
		if !strings.Contains(r.text("system"), "shouldRespond") {
			n++
			return answer{text: "The answer."}
		}
		text := texts[0]
		if len(texts) > 1 {
			texts = texts[1:]
		}
		return answer{text: text}
	})
	return s, func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return n
	}
}

// needle is a workspace whose context names a file.
func needle(t *testing.T) string {
	t.Helper()
	ws := t.TempDir()
	write(t, ws, map[string]string{"needle.go": "package needle\n"})
	return ws
}

// The context of rag/build reaches both commands, and the decision the condition: yes
// generates, no does not, and both complete.
func TestSpecRespondDecides(t *testing.T) {
	for verdict, want := range map[string]int{
		yes:                                1,
		"Sure:\n```json\n" + yes + "\n```": 1,
		`{"shouldRespond": false, "confidence": 1, "reason": "not for it"}`: 0,
	} {
		s, generated := verdicts(t, verdict)
		res := run(t, open(t, host.Options{}), respond(""), needle(t))
		if res.Status != sentinels.StatusCompleted || generated() != want || s.turns() != 1+want {
			t.Errorf("%s: %s with %v, generated %d times, want %d", verdict, res.Status, res.Error, generated(), want)
		}
		for i, r := range s.asked {
			if text := r.text("system") + r.text("user"); !strings.Contains(text, "needle.go") {
				t.Errorf("request %d is without the context: %s", i, text)
			}
		}
		var decision map[string]any
		if err := json.Unmarshal([]byte(variable(t, res, "decision")), &decision); err != nil || decision["shouldRespond"] != (want == 1) || decision["usage"] == nil || decision["model"] != "scripted" {
			t.Errorf("$decision is %v, %v", decision, err)
		}
	}
}

// Spec 002: "onError?: 'fail' | 'skip' | 'retry'". A reply without a verdict is an error:
// fail ends the run with a reason, skip does not read as yes, retry asks again.
func TestSpecRespondOnError(t *testing.T) {
	const rubbish = "I would rather talk about the weather. [APPROVE|REJECT]"
	for _, tt := range []struct {
		name, onError      string
		texts              []string
		status             sentinels.Status
		verdicts, generate int
	}{
		{"fail", "", []string{rubbish, yes}, sentinels.StatusFailed, 1, 0},
		{"skip", `"onError": "skip", `, []string{rubbish, yes}, sentinels.StatusCompleted, 1, 0},
		{"retry", `"onError": {"retry": {"maxRetries": 2, "baseDelayMs": 1}}, `, []string{rubbish, `{"shouldRespond": "yes"}`, yes}, sentinels.StatusCompleted, 3, 1},
		{"retry in vain", `"onError": {"retry": {"maxRetries": 2, "baseDelayMs": 1}}, `, []string{rubbish}, sentinels.StatusFailed, 3, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, generated := verdicts(t, tt.texts...)
			res := run(t, open(t, host.Options{}), respond(tt.onError), needle(t))
			if res.Status != tt.status || generated() != tt.generate || s.turns() != tt.verdicts+tt.generate {
				t.Errorf("%s with %v after %d requests, generated %d times", res.Status, res.Error, s.turns(), generated())
			}
			if tt.status == sentinels.StatusFailed && (abi.CodeOf(res.Error) != abi.Output || !strings.Contains(res.Error.Error(), "should-respond")) {
				t.Errorf("the reason does not say what went wrong: %v", res.Error)
			}
			if tt.name == "skip" && !strings.Contains(variable(t, res, "decision"), `"skipped":true`) {
				t.Errorf("$decision is %s", variable(t, res, "decision"))
			}
		})
	}
}

// A server that fails, and a host without a model, are errors with their own codes and
// never a decision.
func TestSpecRespondWithoutAModel(t *testing.T) {
	s, _ := verdicts(t, yes)
	s.refuse = func(_ int, w http.ResponseWriter) bool {
		http.Error(w, `{"error":{"message":"overloaded"}}`, http.StatusServiceUnavailable)
		return true
	}
	res := run(t, open(t, host.Options{}), respond(""), needle(t))
	if res.Status != sentinels.StatusFailed || abi.CodeOf(res.Error) != abi.Unavailable {
		t.Errorf("a server that fails: %s with %v", res.Status, res.Error)
	}
	t.Setenv("OPENAI_BASE_URL", "")
	t.Setenv("OPENAI_API_KEY", "")
	res = run(t, open(t, host.Options{}), respond(""), needle(t))
	if res.Status != sentinels.StatusFailed || abi.As(res.Error).Hint == "" {
		t.Errorf("no model: %s with %v", res.Status, res.Error)
	}
}

// The turns of the commands count against the budget of the run, as those of an llm
// step do.
func TestSpecRespondIsOnTheBudget(t *testing.T) {
	s, generated := verdicts(t, yes)
	def := strings.Replace(respond(""), `"name": "pair"`, `"name": "pair", "budget": {"calls": 1}`, 1)
	res := run(t, open(t, host.Options{}), def, needle(t))
	if res.Status != sentinels.StatusTimedOut || s.turns() != 1 || generated() != 0 || res.Usage.Calls != 1 {
		t.Errorf("%s with %v after %d requests, usage %+v", res.Status, res.Error, s.turns(), res.Usage)
	}
}

// Spec 002: "Commands.execute() is universal": a command step, a user and the loop of an
// llm step whose tools name it can call it; a model with "*" alone cannot.
func TestSpecRespondIsACommand(t *testing.T) {
	verdicts(t, yes)
	h := open(t, host.Options{})
	var out struct{ ShouldRespond bool }
	must(t, h, "ai/should-respond", `{"message": "hi"}`, &out)
	if !out.ShouldRespond {
		t.Errorf("got %+v", out)
	}
	for tools, offered := range map[string]bool{`["ai/should-respond"]`: true, `["*"]`: false} {
		var names []string
		newModelServer(t, func(r chatRequest) answer {
			for _, tool := range r.Tools {
				names = append(names, tool.Function.Name)
			}
			return answer{text: "done"}
		})
		res := run(t, open(t, host.Options{}), `{"name": "m", "steps": [{"type": "llm", "prompt": "hi", "tools": `+tools+`}]}`, t.TempDir())
		if got := strings.Contains(strings.Join(names, " "), "ai_should-respond"); res.Status != sentinels.StatusCompleted || got != offered {
			t.Errorf("tools %s: %s, offered %v, of %q", tools, res.Status, got, names)
		}
	}
}
