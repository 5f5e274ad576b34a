package sdk

import "github.com/sentinel-runtime/sentinel/sdk/abi"

// Checkpoint ends what a replay of this attempt repeats: the next one starts
// with state in [Context.State], and Run must go on from there. Long loops call
// it after each pass, so that a replay does not grow with their number.
func (c *Context) Checkpoint(state Value) error {
	_, err := c.call(abi.FuncCheckpoint, importCheckpoint, Object(F("state", orNull(state))))
	return err
}
