//go:build unix

package operations

import (
	"errors"
	"os"
	"strconv"
	"syscall"
)

// ownerID returns the number of the user that a file belongs to.
func ownerID(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", errors.New("its file system does not say")
	}
	return strconv.FormatUint(uint64(stat.Uid), 10), nil
}
