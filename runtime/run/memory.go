package run

import (
	"os"
	"strconv"
	"strings"
)

// cgroupLimit has the limit of a container's memory, in bytes or as the word max.
const cgroupLimit = "/sys/fs/cgroup/memory.max"

// halfOfMachine returns half of the memory of this machine or, within a container with a
// limit, of that limit; 1 GiB where the system does not report it.
func halfOfMachine() int64 {
	total := machineMemory()
	text, err := os.ReadFile(cgroupLimit) // absent outside of a container
	if err == nil {
		if limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && limit > 0 && (total == 0 || limit < total) {
			total = limit
		}
	}
	if total == 0 {
		return 1 << 30
	}
	return total / 2 >> 20 << 20 // whole MiB, for people
}
