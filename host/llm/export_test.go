package llm

import (
	"encoding/json"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Doors for tests of what is decided inside.

func ReadJSON(text string, schema bool) json.RawMessage          { return readJSON(text, schema) }
func OllamaURL(host string) string                               { return ollamaURL(host) }
func ReadArguments(text string) json.RawMessage                  { return readArguments(text) }
func GiveIDs(c []sentinels.ToolCall, before []sentinels.Message) { giveIDs(c, before) }

// NameMap returns the two directions of a turn's name mapping.
func NameMap(turn sentinels.Turn) (sent map[string]string, back func(string) string) {
	n := newNames(turn)
	return n.sent, n.back
}

// BuiltinModels returns the rows of prices.json and the models for "auto".
func BuiltinModels() ([]Model, map[string]string, error) {
	p, err := builtinPrices()
	return p.Models, p.Auto, err
}
