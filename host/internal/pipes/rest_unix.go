//go:build unix

package pipes

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// rest passes on what a pipe has, without waiting for more.
func rest(pipe *os.File, buffer []byte, write func([]byte) error) (err error) {
	if err := pipe.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	raw, err := pipe.SyscallConn()
	if err != nil {
		return err
	}
	failed := raw.Read(func(fd uintptr) bool {
		for size := 0; size < maxRest; {
			n, e := unix.Read(int(fd), buffer)
			switch {
			case errors.Is(e, unix.EINTR):
				continue
			case e != nil || n <= 0: // EAGAIN: the pipe is empty
				return true
			}
			size += n
			if err = write(buffer[:n]); err != nil {
				return true
			}
		}
		return true
	})
	if err == nil {
		err = failed
	}
	return err
}
