package step

import (
	"encoding/json"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// requestLimits are clause A6.1. A request is bounded by its bytes, so keys and
// strings need no smaller bound of their own.
var requestLimits = strictjson.Limits{Bytes: maxMessage, Depth: 256, Keys: maxMessage, StringBytes: maxMessage}

// parse reads a request strictly: an unknown key is an error, so that a misspelt
// option of a plugin is not ignored.
func parse(c *call, into any) *abi.Error {
	if err := strictjson.Decode(c.request, into, requestLimits); err != nil {
		return errf(abi.BadFields, "%s: %v", c.function, err)
	}
	return nil
}

func reply(v any) (callEnd, error) {
	b, err := json.Marshal(v)
	return callEnd{result: b}, err
}

// callKey is the idempotency key of a call, equal for all attempts of the step.
func (a *attempt) callKey(c *call) string { return CallKey(a.key(), c.seq) }
