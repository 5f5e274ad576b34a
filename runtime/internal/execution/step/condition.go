package step

import (
	"encoding/json"
	"strings"

	"github.com/sentinel-runtime/sentinel/runtime/internal/cond"
	"github.com/sentinel-runtime/sentinel/sentinels/reference"
)

// ConditionVars returns the variables of a condition. A variable that has no value yet,
// such as $retry in a first attempt, is left out, so that $retry.attempts is undefined.
func ConditionVars(lookup reference.Lookup) cond.Vars {
	return func(name string) (json.RawMessage, bool) {
		v, ok := lookup(name)
		return v, ok && len(v) > 0
	}
}

// maxConditionText is the maximum size in bytes of a condition's value in the journal.
const maxConditionText = 200

// ConditionText returns the value of a condition for display, as JSON: the string
// "false", which is true, is shown with quotes.
func (s *Services) ConditionText(v cond.Value) string {
	if v.JSON == nil {
		return "undefined"
	}
	text := string(s.Redact.JSON(v.JSON))
	if len(text) <= maxConditionText {
		return text
	}
	return strings.ToValidUTF8(text[:maxConditionText], "") + "..."
}
