package sentinels_test

import (
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// TestStoredNames: "aliases are resolved before a patch is merged".
func TestStoredNames(t *testing.T) {
	for _, c := range []struct{ step, patch, want string }{
		{"shell", `{"workingDir": null, "x": 1}`, `{"cwd":null,"x":1}`},
		{"llm", `{"systemPrompt": "s"}`, `{"system":"s"}`},
		{"llm", `{"type": "shell", "workingDir": "a"}`, `{"cwd":"a","type":"shell"}`},
		{"condition", `{"if": "$a"}`, `{"check":"$a"}`},
		{"sentinel", `{"definition": {"pipeline": [], "timeoutMs": 5, "loop": {"if": "$a"}, "trigger": {"cron": "* * * * *"}}}`,
			`{"definition":{"loop":{"check":"$a"},"safety":{"timeoutMs":5},"steps":[],"trigger":{"cronExpression":"* * * * *"}}}`},
		{"gone", `{"workingDir": "a"}`, `{"workingDir":"a"}`},
	} {
		if got, err := sentinels.StoredNames([]byte(c.patch), sentinels.StepType(c.step), types(t)); err != nil || string(got) != c.want {
			t.Errorf("%s %s: %s, %v; want %s", c.step, c.patch, got, err, c.want)
		}
	}
	for patch, want := range map[string]string{
		`{"workingDir": "a", "cwd": null}`: `"workingDir" and "cwd" are the same field; remove one`,
		`[]`:                               "want an object",
	} {
		if _, err := sentinels.StoredNames([]byte(patch), "shell", types(t)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", patch, err)
		}
	}
}
