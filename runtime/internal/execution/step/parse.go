package step

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// parseOutput parses the text of a step's output, which is whole. It returns nil without a mode. A text
// that does not have the form is an error of the attempt, which may be tried again: a model
// may answer differently.
func parseOutput(mode sentinels.Parse, out json.RawMessage) (json.RawMessage, error) {
	if mode == "" {
		return nil, nil
	}
	text, ok := outputText(out)
	if !ok {
		return nil, &abi.Error{Code: abi.Output, Field: "parse", Permanent: true, Message: "parse: the output of the step has no text", Hint: `remove "parse"`}
	}
	trimmed := strings.TrimSpace(text)
	switch mode {
	case sentinels.ParseTrim:
		return strictjson.AppendString(nil, trimmed), nil
	case sentinels.ParseLines:
		lines := strings.Split(strings.ReplaceAll(strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r"), "\r\n", "\n"), "\n")
		if trimmed == "" {
			lines = []string{}
		}
		return json.Marshal(lines)
	case sentinels.ParseNumber:
		if number := json.RawMessage(trimmed); json.Valid(number) && (trimmed[0] == '-' || trimmed[0] >= '0' && trimmed[0] <= '9') {
			return number, nil
		}
		return nil, failure.New(abi.Output, "parse: the text is not a number: %s", beginning(text))
	}
	if err := strictjson.Check([]byte(trimmed), strictjson.Unlimited()); err != nil {
		return nil, failure.New(abi.Output, "parse: the text is not JSON: %v: %s", err, beginning(text))
	}
	return bytes.Clone([]byte(trimmed)), nil
}

// cutOutput returns the error for an output that is not whole, nil for any other: what was
// parsed would be a part that looks like all of it. outline is the output without its large values, as the guest
// returned it: they are not read for two keys beside them.
func cutOutput(out, outline json.RawMessage) *abi.Error {
	var fields struct {
		Truncated  bool   `json:"truncated"`
		StopReason string `json:"stopReason"`
	}
	if len(out) == 0 || out[0] != '{' {
		return nil
	}
	if len(outline) == 0 || outline[0] != '{' { // the whole output is a value that the guest passed on
		outline = out
	}
	if !mayHaveCut(outline) || strictjson.DecodeForeign(outline, &fields) != nil {
		return nil
	}
	e := &abi.Error{Code: abi.Limit, Permanent: true}
	switch {
	case fields.Truncated:
		e.Message = fmt.Sprintf("the output was cut, its field truncated is true: %d bytes of it are here", len(out))
		e.Hint = `a loop with "each": {"linesOf": "$id.executionId"} has each line of a program's output; ` +
			"or write it to a file and read that in parts; a value has at most 16 MiB, of a program 8 MiB"
	case fields.StopReason == "length":
		e.Permanent = false // another reply may be shorter
		e.Message = "the reply of the model was cut at its limit of tokens, its stopReason is length"
		e.Hint = `raise "maxTokens" of the step, or ask for less`
	default:
		return nil
	}
	return e
}

// mayHaveCut reports whether an output may have one of the keys that cutOutput reads. It keeps a large
// one, which a guest without handles has written, from being decoded for them.
func mayHaveCut(out json.RawMessage) bool {
	return bytes.Contains(out, []byte(`"truncated"`)) || bytes.Contains(out, []byte(`"stopReason"`)) || bytes.Contains(out, []byte(`\u00`))
}

// outputText returns the text of an output: a string, or the "text" or "content" of an
// object.
func outputText(out json.RawMessage) (string, bool) {
	var text string
	if len(out) > 0 && out[0] == '"' && json.Unmarshal(out, &text) == nil {
		return text, true
	}
	var fields struct {
		Text    *string `json:"text"`
		Content *string `json:"content"`
	}
	if strictjson.DecodeForeign(out, &fields) != nil {
		return "", false
	}
	switch {
	case fields.Text != nil:
		return *fields.Text, true
	case fields.Content != nil:
		return *fields.Content, true
	}
	return "", false
}

// beginning returns the beginning of a text for an error.
func beginning(text string) string {
	const most = 80
	return fmt.Sprintf("%q", textcut.Mark(text, most))
}
