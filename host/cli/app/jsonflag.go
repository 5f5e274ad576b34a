package app

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// JSONFlag reads a flag that takes JSON. "@FILE" stands for the text of FILE.
func (a *App) JSONFlag(flag, text string) (json.RawMessage, error) {
	if text == "" {
		return nil, nil
	}
	where, hint := flag, "a text needs quotes of its own: '\"text\"'"
	if name, ok := strings.CutPrefix(text, "@"); ok {
		b, err := ReadFile(a.Path(name), MaxFile)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
		text, where, hint = string(b), flag+" "+name, ""
	}
	if err := strictjson.Check([]byte(text), JSONLimits); err != nil {
		if json.Valid([]byte(text)) {
			hint = ""
		}
		return nil, &UsageError{fmt.Sprintf("%s: %v", where, err), hint}
	}
	return json.RawMessage(strings.TrimSpace(text)), nil
}

// JSONLimits bound JSON that a user gives on the command line or in a file. The
// parameters of a command have the same.
var JSONLimits = strictjson.Limits{Bytes: 4 << 20, Depth: strictjson.DefaultDepth + 8, Keys: 100_000, StringBytes: 4 << 20}

// ValueOf reads a value that was typed: a string where one is wanted, else JSON
// if it is JSON, and else a string again, which the engine may refuse. JSON with
// duplicate keys or the like is an error.
func ValueOf(text, want string) (json.RawMessage, error) {
	if want == "string" || !json.Valid([]byte(text)) {
		return json.Marshal(text)
	}
	return json.RawMessage(strings.TrimSpace(text)), strictjson.Check([]byte(text), JSONLimits)
}
