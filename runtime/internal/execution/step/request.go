package step

import (
	"encoding/json"

	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// requestLimits are the limits of a request, ABI clause A6.1. Its size also bounds its
// keys and strings, so these have no smaller limits.
var requestLimits = strictjson.Limits{Bytes: maxMessage, Depth: 256, Keys: maxMessage, StringBytes: maxMessage}

// checkRequest checks a request. Of one with an outline that is enough, because its values were
// checked when they became values.
func checkRequest(request []byte, outline *wasm.Outline) error {
	if outline != nil {
		limits := requestLimits
		limits.Depth -= wasm.MaxHandleDepth
		if strictjson.Check(outline.Text, limits) == nil {
			return nil
		}
	}
	return strictjson.Check(request, requestLimits)
}

// parseOutline decodes a request as [parse]. The raw values in it have to be completed by
// [wasm.Outline.Insert].
func parseOutline(c *call, into any) *abi.Error {
	if c.outline == nil {
		return parse(c, into)
	}
	if err := strictjson.Decode(c.outline.Text, into, requestLimits); err != nil {
		return failure.New(abi.BadFields, "%s: %v", c.function, err)
	}
	return nil
}

// parse decodes a request. An unknown key is an error, so that a misspelt option is not
// ignored.
func parse(c *call, into any) *abi.Error {
	if err := strictjson.Decode(c.request, into, requestLimits); err != nil {
		return failure.New(abi.BadFields, "%s: %v", c.function, err)
	}
	return nil
}

// reply returns the outcome of a call with the result v.
func reply(v any) (callEnd, error) {
	b, err := json.Marshal(v)
	return callEnd{result: b}, err
}

// callKey returns the idempotency key of a call, the same for all attempts of the step.
func (a *attempt) callKey(c *call) string { return CallKey(a.key(), c.seq) }
