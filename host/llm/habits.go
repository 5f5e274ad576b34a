package llm

import (
	"errors"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/llm/wire"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// habits are what one model at one server does not take. They start from what
// is known of it and grow with what it refuses.
type habits struct {
	dialect       wire.Dialect
	noTemperature bool
	textTools     bool  // tools go into the system text
	textSchema    bool  // the schema goes into the system text
	window        int64 // most tokens of its window, if its server said so or refused more; else 0
	guessed       bool  // window is estimated from what was refused
}

// habitsOf returns what is known of a model's habits.
func (m *Models) habitsOf(c chosen) habits {
	m.mu.Lock()
	defer m.mu.Unlock()
	if h, ok := m.learned[c.Provider+"/"+c.Model]; ok {
		return h
	}
	row, _ := m.row(c.provider, c.Model)
	return habits{
		dialect:       wire.Dialect{CompletionTokens: c.provider.official},
		noTemperature: row.NoTemperature,
		textTools:     c.provider.Tools == ToolsText,
		textSchema:    row.NoSchema,
	}
}

// learn keeps habits for later turns of this process. Turns that run side by
// side may each meet the refusal; what they learn is the same.
func (m *Models) learn(c chosen, h habits) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.learned[c.Provider+"/"+c.Model] = h
}

// adapt reads a refusal and returns the habit it teaches, with a note of it.
// ok is false if the refusal is about something else, or about a part that the
// request did not have: then asking again would change nothing.
func (h habits) adapt(err error, p *provider, r wire.Request, turn sentinels.Turn) (next habits, note string, ok bool) {
	f, is := errors.AsType[*wire.Failure](err)
	if !is || f.Kind != wire.Status || f.Status != 400 && f.Status != 422 && f.Status != 501 {
		return h, "", false
	}
	text := strings.ToLower(f.Message + " " + f.Code)
	has := func(words ...string) bool {
		for _, word := range words {
			if strings.Contains(text, word) {
				return true
			}
		}
		return false
	}
	// The words are those of OpenAI, Ollama, vLLM, llama.cpp and Anthropic, as
	// of the date of the price table. A refusal in other words stays an error.
	switch {
	case has("stream_options", "include_usage") && !r.Dialect.NoUsage:
		h.dialect.NoUsage = true
		return h, "the server does not count tokens in a stream", true
	case has("max_completion_tokens", "max_tokens") && has("unsupported", "not supported", "unrecognized", "unknown", "extra", "not permitted") && p.Kind == KindOpenAI &&
		r.Dialect.CompletionTokens == p.official: // changed at most once
		h.dialect.CompletionTokens = !h.dialect.CompletionTokens
		return h, "the server names the limit on output differently", true
	case has("temperature") && r.Temperature != nil:
		h.noTemperature = true
		return h, "sent without temperature, which the model refuses", true
	case r.Schema != nil && has("response_format", "json_schema", "output_config", "output_format", "structured output", "schema"):
		h.textSchema = true
		return h, "sent with the schema in the system text, since the server refused it as a parameter", true
	case len(turn.Tools) > 0 && !h.textTools && p.Tools == ToolsAuto && has("tool", "function") && has("not support", "unsupported", "does not", "no support", "--jinja"):
		h.textTools = true
		return h, "sent with the tools in the system text, since the model has no native ones", true
	}
	return h, "", false
}
