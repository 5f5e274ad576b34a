package app

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// FileArgument returns the text of FILE for "@FILE", that of standard input for "@-", and
// any other text as it is. Of "@@" the first is taken away.
func (a *App) FileArgument(text string) (string, error) {
	name, ok := strings.CutPrefix(text, "@")
	switch {
	case !ok || strings.HasPrefix(name, "@"):
		return name, nil
	case name == "-":
		b, err := io.ReadAll(io.LimitReader(a.Env.Stdin, MaxFile+1))
		if err == nil && len(b) > MaxFile {
			err = fmt.Errorf("standard input has more than %d bytes", MaxFile)
		}
		return string(b), err
	}
	b, err := ReadFile(a.Path(name), MaxFile)
	return string(b), err
}

// JSONFlag reads a flag that takes JSON. "@FILE" stands for the text of FILE, "@-" for
// standard input.
func (a *App) JSONFlag(flag, text string) (json.RawMessage, error) {
	if text == "" {
		return nil, nil
	}
	where, hint := flag, "a text needs quotes of its own: '\"text\"'"
	if name, ok := strings.CutPrefix(text, "@"); ok {
		var err error
		if text, err = a.FileArgument(text); err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
		where, hint = flag+" "+name, ""
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
