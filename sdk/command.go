package sdk

import "github.com/sentinel-runtime/sentinel/sdk/abi"

// Command calls a host command and returns its result. A command that ran and found
// a failure returns a result, often with success false; an error means that it could
// not run. Params may be absent.
func (c *Context) Command(name string, params Value) (Value, error) {
	return c.call(abi.FuncCommand, importCommand, Object(F("command", String(name)), F("params", params)))
}

// ToolCommand calls a command that a model has requested. The host checks the call
// against the allow-list, converts and validates the arguments, and protects files
// that configure tools.
func (c *Context) ToolCommand(name string, arguments Value, tools []string) (Value, error) {
	return c.call(abi.FuncCommand, importCommand, Object(
		F("command", String(name)),
		F("params", arguments),
		F("by", String("model")),
		F("tools", Strings(tools)),
	))
}
