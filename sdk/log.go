package sdk

import "github.com/sentinel-runtime/sentinel/sdk/abi"

// Debug, Info, Warn and Error write a line to the run log. Logging never fails a
// step: the host drops and counts lines above the limit.

// Debug logs a line for the step's author.
func (c *Context) Debug(message string) { c.log("debug", message) }

// Info logs a line for users who follow the run.
func (c *Context) Info(message string) { c.log("info", message) }

// Warn logs a line that needs attention.
func (c *Context) Warn(message string) { c.log("warn", message) }

// Error logs a line about a failure. It does not end the step.
func (c *Context) Error(message string) { c.log("error", message) }

func (c *Context) log(level, message string) {
	_, _ = c.call(abi.FuncLog, importLog, Object(F("level", String(level)), F("message", String(message))))
}
