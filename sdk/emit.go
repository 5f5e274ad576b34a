package sdk

import "github.com/sentinel-runtime/sentinel/sdk/abi"

// Emit publishes an event and returns its id. Another attempt of the step emits the
// same event, not a second one.
func (c *Context) Emit(event string, data Value) (id string, err error) {
	answer, err := c.call(abi.FuncEmit, importEmit, Object(F("event", String(event)), F("data", data)))
	if err != nil {
		return "", err
	}
	return answer.Get("id").StringOr(""), nil
}
