package step

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/runtime/internal/cond"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/reference"
)

// ConditionVars returns the names of a lookup for a condition. A reserved name that has
// nothing to say, such as $retry in a first attempt, has no value there, so that
// $retry.attempts is undefined and no error.
func ConditionVars(lookup reference.Lookup) cond.Vars {
	return func(name string) (json.RawMessage, bool) {
		v, ok := lookup(name)
		if ok && string(v) == "null" && slices.Contains(sentinels.Reserved, name) {
			return nil, false
		}
		return v, ok
	}
}

// maxConditionText is how much of a condition's value the journal keeps for the
// trace, in bytes.
const maxConditionText = 200

// ConditionText returns the value of a condition for people, as JSON: a text
// "false", which is true, is shown with its quotes.
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
