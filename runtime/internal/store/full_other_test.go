//go:build !linux && !darwin

package store_test

func failWritesMain() bool { return false }
