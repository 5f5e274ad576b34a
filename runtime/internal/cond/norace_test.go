//go:build !race

package cond_test

const raceEnabled = false
