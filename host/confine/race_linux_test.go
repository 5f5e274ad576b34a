//go:build race

package confine_test

// raceEnabled says that programs of this test binary run under the race detector, which needs
// gigabytes of addresses after a fork.
const raceEnabled = true
