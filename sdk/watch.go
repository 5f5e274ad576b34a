package sdk

import "github.com/sentinel-runtime/sentinel/sdk/abi"

// Watch blocks until lines of a shell execution are there: until it finished
// (also the meaning of ""), the first error line ("error"), or the first line
// that a rule matched ("match"). Rules is a list as in clause A6.5 of ABI.md,
// or absent for those the execution already has. It returns the answer whole:
// executionId, lines, text, finished, exitCode, dropped, cursor.
func (c *Context) Watch(executionID string, rules Value, until string) (Value, error) {
	return c.call(abi.FuncWatch, importWatch, Object(
		F("executionId", String(executionID)),
		F("rules", rules),
		F("until", Text(until)),
	))
}
