//go:build race

package cond_test

// The race detector uses several bytes for each byte of the program.
const raceEnabled = true
