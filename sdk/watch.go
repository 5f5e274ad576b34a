package sdk

import "github.com/sentinel-runtime/sentinel/sdk/abi"

// Watch waits for lines of a shell execution: until it has finished ("finished" or ""),
// until the first error line ("error"), or until the first line that matches a rule
// ("match"). Rules is a list as in clause A6.5 of ABI.md, or absent for those that the
// execution already has. Watch returns the whole answer: executionId, lines, text,
// finished, exitCode, dropped, from, cursor.
func (c *Context) Watch(executionID string, rules Value, until string) (Value, error) {
	return c.WatchFor(executionID, rules, until, 0)
}

// WatchFor is [Context.Watch] with a time limit; reaching it is an error with code timeout.
// A timeoutMs of 0 means that only the timeout of the step applies.
func (c *Context) WatchFor(executionID string, rules Value, until string, timeoutMs int64) (Value, error) {
	return c.watch(Object(
		F("executionId", String(executionID)),
		F("rules", rules),
		F("until", Text(until)),
	), timeoutMs)
}

// WatchFile waits for lines of a file of the workspace that grows: until the first error
// line ("error"), until the first line that matches a rule ("match"), or, with a timeoutMs,
// for that time, which is a result. from is "end" or "" for lines that are written from now
// on, "start", or the position of an earlier answer. WatchFile returns the whole answer:
// file, lines, text, finished, timedOut, dropped, from, position.
func (c *Context) WatchFile(file string, rules Value, until, from string, timeoutMs int64) (Value, error) {
	return c.watch(Object(
		F("file", String(file)),
		F("rules", rules),
		F("until", Text(until)),
		F("from", Text(from)),
	), timeoutMs)
}

func (c *Context) watch(request Value, timeoutMs int64) (Value, error) {
	if timeoutMs > 0 {
		request = request.With("timeoutMs", Int(timeoutMs))
	}
	return c.call(abi.FuncWatch, importWatch, request)
}
