// Package sentinel holds the commands that steer sentinels: define, start,
// stop, pause, resume, decide and look at them.
package sentinel
