// Package sentinel implements the commands on sentinels and runs: define, start,
// stop, pause, resume, decide and inspect.
package sentinel
