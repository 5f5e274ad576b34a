package sentinels

import (
	"bytes"
	"encoding/json"

	"github.com/tailscale/hujson"
)

// Standardize returns a text without comments and trailing commas, as standard JSON.
// It is for texts that are sent to another host: it reports problems of the syntax,
// but only that host can check step types and triggers.
func Standardize(file string, text []byte) (json.RawMessage, Problems) {
	if _, _, problems := parse(file, text); len(problems) > 0 {
		return nil, problems
	}
	standard, err := hujson.Standardize(bytes.Clone(text)) // it changes its argument
	if err != nil {
		return nil, Problems{{File: file, Line: 1, Column: 1, Kind: KindSyntax, Message: err.Error()}}
	}
	return standard, nil
}
