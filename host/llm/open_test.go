package llm_test

import (
	"testing"

	"github.com/sentinel-runtime/sentinel/host/llm"
	"github.com/sentinel-runtime/sentinel/host/redact"
)

func TestOpenRegistersKeys(t *testing.T) {
	var r redact.Redactor
	m := open(t, llm.Config{
		Redact: &r, Env: env("OPENAI_API_KEY", key+"\n", "ANTHROPIC_API_KEY", "short", "WORK_KEY", "work-key-0123456789"),
		Providers: []llm.Provider{{
			Name: "work", BaseURL: "https://me:pa55word99@llm.example/v1", KeyEnv: "WORK_KEY",
			Headers: map[string]string{"X-Team-Token": "team-token-12345", "X-Team": "the-team-of-teams"},
		}},
	})
	for text, hidden := range map[string]bool{
		key: true, "work-key-0123456789": true, "team-token-12345": true, "pa55word99": true,
		"the-team-of-teams": false, "short": false,
	} {
		if got := r.String(text); (got != text) != hidden {
			t.Errorf("%q becomes %q", text, got)
		}
	}
	for _, p := range m.Providers() {
		if p.Name == "work" && (p.BaseURL == "https://me:pa55word99@llm.example/v1" || !p.Ready) {
			t.Errorf("listed as %+v", p)
		}
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if err := m.Close(); err != nil {
		t.Error("closed twice:", err)
	}
}

func TestTemperatureIsBoundedWhereTheProtocolHasABound(t *testing.T) {
	f := newFake(t, status(500, ""))
	m := open(t, llm.Config{Env: env("ANTHROPIC_BASE_URL", f.URL), Default: "anthropic/claude-sonnet-4-6"})
	turn := ask("x")
	temperature := 1.7
	turn.Temperature = &temperature
	_, _ = m.Turn(t.Context(), turn, nil)
	if got := f.seen()[0].body["temperature"]; got != 1.0 {
		t.Errorf("temperature %v was sent", got)
	}
}
