//go:build !linux

package run

// machineMemory returns 0: the memory of processes is counted on Linux alone, so that no limit
// on it depends on the machine elsewhere.
func machineMemory() int64 { return 0 }
