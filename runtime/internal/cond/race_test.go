//go:build race

package cond_test

// The race detector keeps several bytes for each one of the program.
const raceEnabled = true
