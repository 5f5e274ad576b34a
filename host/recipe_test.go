package host_test

import (
	"os"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
)

// Spec 002: "A Recipe IS a Sentinel with loop: { type: 'once' } and a UI layout", and
// "existing recipes continue working unchanged": a recipe with all fields that
// RecipeDefinition has, among them ragTemplate, runs as it is.
func TestRecipeRunsUnchanged(t *testing.T) {
	server := newModelServer(t, func(r chatRequest) answer {
		if strings.Contains(r.text("system")+r.text("user"), "shouldRespond") {
			return answer{text: `{"shouldRespond": true, "confidence": 0.9, "reason": "asked"}`}
		}
		return answer{text: "The answer."}
	})
	recipe, err := os.ReadFile("../sentinels/testdata/good/recipe.json")
	if err != nil {
		t.Fatal(err)
	}
	ws := t.TempDir()
	write(t, ws, map[string]string{"recipe.json": string(recipe)})
	h := open(t, host.Options{Workspace: ws})
	must(t, h, "collaboration/chat/send", `{"room": "general", "message": "How do loops end?"}`, nil)
	var valid struct{ Valid bool }
	must(t, h, "sentinel/validate", `{"file": "recipe.json"}`, &valid)
	var run struct{ Run string }
	must(t, h, "sentinel/start", `{"file": "recipe.json"}`, &run)
	var res struct {
		Status    string
		Error     any
		Variables map[string]any
	}
	must(t, h, "sentinel/await", `{"run": "`+run.Run+`"}`, &res)
	if !valid.Valid || res.Status != "completed" || !strings.Contains(res.Variables["answer"].(map[string]any)["text"].(string), "The answer.") {
		t.Errorf("valid %v, run %+v", valid.Valid, res)
	}
	server.mu.Lock()
	defer server.mu.Unlock()
	if text := server.asked[0].text("system") + server.asked[0].text("user"); !strings.Contains(text, "How do loops end?") {
		t.Errorf("the model was asked without the messages of the room: %s", text)
	}
}
