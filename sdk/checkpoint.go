package sdk

import "github.com/sentinel-runtime/sentinel/sdk/abi"

// Checkpoint limits what a replay of this attempt repeats: the next replay starts
// with state in [Context.State], and Run must continue from there. Long loops call
// it after each iteration, so that a replay does not repeat all of them.
func (c *Context) Checkpoint(state Value) error {
	_, err := c.call(abi.FuncCheckpoint, importCheckpoint, Object(F("state", orNull(state))))
	return err
}
