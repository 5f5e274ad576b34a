//go:build race

package killtest_test

// raceEnabled says that hosts run under the race detector, about ten times
// slower.
const raceEnabled = true
