//go:build unix && !linux

package shell_test

// helperHost is for the crash test, which needs what only Linux has.
func helperHost() {}
