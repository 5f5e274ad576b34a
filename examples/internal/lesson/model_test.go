package lesson_test

import (
	"encoding/json"
	"testing"

	"github.com/sentinel-runtime/sentinel/examples/internal/lesson"
)

func TestAsked(t *testing.T) {
	var asked lesson.Asked
	if err := json.Unmarshal([]byte(`{"messages":[
		{"role":"system","content":"be kind"},
		{"role":"user","content":"first"},
		{"role":"assistant","content":null},
		{"role":"tool","content":"one"},
		{"role":"tool","content":"two"},
		{"role":"user","content":[{"type":"text","text":"second"}]}]}`), &asked); err != nil {
		t.Fatal(err)
	}
	for role, want := range map[string]string{
		"system": "be kind", "tool": "two", "assistant": "", "unknown": "",
		"user": `[{"type":"text","text":"second"}]`, // parts are shown as they came
	} {
		if got := asked.Text(role); got != want {
			t.Errorf("Text(%q) = %q, want %q", role, got, want)
		}
	}
	if got := asked.Results(); got != 2 {
		t.Errorf("Results() = %d, want 2", got)
	}
}
