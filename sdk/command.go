package sdk

import "github.com/sentinel-runtime/sentinel/sdk/abi"

// Command calls a host command and returns its result. A command that ran and
// found something bad is a result, often with success false; an error means
// that it could not run. Params may be absent.
func (c *Context) Command(name string, params Value) (Value, error) {
	return c.call(abi.FuncCommand, importCommand, Object(F("command", String(name)), F("params", params)))
}

// ToolCommand calls a command as the wish of a model. The host holds the call
// to the allow-list, reads arguments generously and then checks them, and
// protects the files that steer tools.
func (c *Context) ToolCommand(name string, arguments Value, tools []string) (Value, error) {
	return c.call(abi.FuncCommand, importCommand, Object(
		F("command", String(name)),
		F("params", arguments),
		F("by", String("model")),
		F("tools", Strings(tools)),
	))
}
