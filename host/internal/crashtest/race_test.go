//go:build race

package crashtest_test

// raceEnabled says that hosts run under the race detector, about ten times
// slower.
const raceEnabled = true
