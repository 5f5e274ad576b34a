//go:build !race

package confine_test

const raceEnabled = false
