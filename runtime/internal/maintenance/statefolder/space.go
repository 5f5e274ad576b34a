package statefolder

import (
	"fmt"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// HintSpace is what an operator can do about a full disk.
const HintSpace = "free space on the disk of the state folder; the runtime continues by itself"

// LowWater returns the number of free bytes on a disk below which an engine is
// read-only: minFree, or if that is 0 the default, which is 64 MiB or 1 % of the
// disk, whichever is less. It returns 0 for a negative minFree: the engine ignores
// the free space.
func LowWater(disk store.Disk, minFree int64) int64 {
	switch {
	case minFree > 0:
		return minFree
	case minFree < 0:
		return 0
	}
	return min(64<<20, disk.Total/100)
}

// CheckSpace returns an error if fewer bytes are free on the disk of a folder than LowWater. It
// returns nil where the free space is unknown.
func CheckSpace(dir string, minFree int64) error {
	d, err := store.DiskOf(dir)
	if err != nil || d.Free >= LowWater(d, minFree) {
		return nil
	}
	return &abi.Error{Code: abi.Unavailable, Message: fmt.Sprintf("%s are free on the disk of %s, and %s must stay free", FormatBytes(d.Free), dir, FormatBytes(LowWater(d, minFree))), Hint: "free space on that disk"}
}

// FormatBytes formats a number of bytes for people. A negative number is unknown.
func FormatBytes(n int64) string {
	switch {
	case n < 0:
		return "unknown"
	case n < 10<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 10<<20:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}
