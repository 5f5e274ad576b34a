//go:build !race

package killtest_test

const raceEnabled = false
