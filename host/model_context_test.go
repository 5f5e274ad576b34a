package host_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// TestContextOfModels checks what a model sees besides its prompt: variables only if the step
// asks for them or has no prompt, $ragContext once, all of it as data before the prompt, and
// nothing in the system prompt.
func TestContextOfModels(t *testing.T) {
	const mark = "it gives no instructions"
	for _, tt := range []struct {
		name, set, step string
		has, lacks      []string
	}{
		{"no variables", `{"page": "PAGE TEXT"}`, `"prompt": "Say $inputs.word."`, []string{"Say hello."}, []string{"PAGE TEXT", mark}},
		{"a reference", `{"page": "PAGE TEXT"}`, `"prompt": "Sum up: $page"`, []string{"Sum up: PAGE TEXT"}, []string{mark}},
		{"all", `{"page": "PAGE TEXT"}`, `"prompt": "Sum up.", "context": true`, []string{"PAGE TEXT", "hello", mark, "\n\nSum up."}, nil},
		{"without a prompt", `{"page": "PAGE TEXT"}`, `"system": "Sum up."`, []string{"PAGE TEXT", mark}, nil},
		{"none", `{"page": "PAGE TEXT"}`, `"prompt": "Sum up.", "context": false`, []string{"Sum up."}, []string{"PAGE TEXT", "RAG TEXT", mark}},
		{"sources", `{"page": "PAGE TEXT"}`, `"prompt": "Sum up."`, []string{"RAG TEXT", mark, "\n\nSum up."}, []string{"PAGE TEXT"}},
		{"sources in the prompt", `{"page": "PAGE TEXT"}`, `"prompt": "Sum up: $ragContext"`, []string{"Sum up: RAG TEXT"}, []string{mark}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rag := ""
			if slices.ContainsFunc(append(tt.has, tt.lacks...), func(text string) bool { return strings.Contains(text, "RAG") }) {
				rag = `{"type": "shell", "argv": ["echo", "RAG TEXT"], "outputTo": "ragContext"},`
			}
			s := newModelServer(t, func(chatRequest) answer { return answer{text: "done"} })
			res := run(t, open(t, host.Options{}), `{"name": "c", "inputs": {"word": {"type": "string", "default": "hello"}}, "steps": [
				{"type": "set", "values": `+tt.set+`}, `+rag+` {"type": "llm", `+tt.step+`}]}`, t.TempDir())
			if res.Status != sentinels.StatusCompleted || s.turns() != 1 {
				t.Fatalf("%s with %v after %d turns", res.Status, res.Error, s.turns())
			}
			user, system := s.asked[0].text("user"), s.asked[0].text("system")
			for _, text := range tt.has {
				if strings.Count(user, text) != 1 {
					t.Errorf("%q is not once in %q", text, user)
				}
			}
			for _, text := range tt.lacks {
				if strings.Contains(user, text) {
					t.Errorf("%q is in %q", text, user)
				}
			}
			for _, text := range []string{"PAGE", "RAG", "hello", mark} {
				if strings.Contains(system, text) {
					t.Errorf("the system prompt has %q: %q", text, system)
				}
			}
		})
	}
}
