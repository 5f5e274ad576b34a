package sdk

import "github.com/sentinel-runtime/sentinel/sdk/abi"

// Watch waits for lines of a shell execution: until it has finished ("finished" or ""),
// until the first error line ("error"), or until the first line that matches a rule
// ("match"). Rules is a list as in clause A6.5 of ABI.md, or absent for those that the
// execution already has. Watch returns the whole answer: executionId, lines, text,
// finished, exitCode, dropped, cursor.
func (c *Context) Watch(executionID string, rules Value, until string) (Value, error) {
	return c.call(abi.FuncWatch, importWatch, Object(
		F("executionId", String(executionID)),
		F("rules", rules),
		F("until", Text(until)),
	))
}
