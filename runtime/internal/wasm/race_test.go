//go:build race

package wasm_test

// raceEnabled reports that the race detector makes guests about ten times slower.
const raceEnabled = true
