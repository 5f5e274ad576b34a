package sentinels

import (
	"bytes"
	"encoding/json"

	"github.com/tailscale/hujson"
)

// Plain returns the JSON that a text with comments and trailing commas means, as
// it is sent to a host elsewhere. It reports what is wrong with the syntax, with
// its place, and nothing else: which step types and triggers there are is known
// to that host alone.
func Plain(file string, text []byte) (json.RawMessage, Problems) {
	if _, _, problems := parse(file, text); len(problems) > 0 {
		return nil, problems
	}
	plain, err := hujson.Standardize(bytes.Clone(text)) // it works in place
	if err != nil {
		return nil, Problems{{File: file, Line: 1, Column: 1, Kind: KindSyntax, Message: err.Error()}}
	}
	return plain, nil
}
