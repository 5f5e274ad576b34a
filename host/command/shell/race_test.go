//go:build race

package shell_test

// raceEnabled says that patterns match under the race detector, about ten times slower.
const raceEnabled = true
