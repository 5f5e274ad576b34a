package sdk

import "github.com/sentinel-runtime/sentinel/sdk/abi"

// Debug, Info and Warn write a line to the log of the step. Logging never
// fails a step: a line beyond the limit is dropped and counted by the host.

// Debug logs a line for the step's author.
func (c *Context) Debug(message string) { c.log("debug", message) }

// Info logs a line for people who follow the run.
func (c *Context) Info(message string) { c.log("info", message) }

// Warn logs a line that someone should look at.
func (c *Context) Warn(message string) { c.log("warn", message) }

func (c *Context) log(level, message string) {
	_, _ = c.call(abi.FuncLog, importLog, Object(F("level", String(level)), F("message", String(message))))
}
