// Package pipes reads the output of a process to its end.
//
// A process that has ended may have left one that holds its pipes, such as a connection that ssh
// keeps for later, so a reader cannot wait for their end. A reader with a deadline alone loses
// what was written before it, when the machine is so busy that the reader does not get its turn.
package pipes

import (
	"errors"
	"io"
	"os"
	"time"
)

// maxRest bounds what a pipe can hold, in bytes: another process may write on without end.
const maxRest = 1 << 20

// Copy passes what is read from a pipe to write, until the end of the pipe, an error of write, or the
// deadline of the pipe. At the deadline it passes what the pipe still has. The error is that of
// write or of reading; the end and the deadline are none.
func Copy(pipe *os.File, write func([]byte) error) error {
	buffer := make([]byte, 64<<10)
	for {
		n, err := pipe.Read(buffer)
		if n > 0 {
			if err := write(buffer[:n]); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return rest(pipe, buffer, write)
		case errors.Is(err, io.EOF), errors.Is(err, os.ErrClosed):
			return nil
		case err != nil:
			return err
		}
	}
}

// End has Copy return after a time, if the pipe has not ended. It returns at once.
func End(pipe *os.File, after time.Duration) {
	if pipe.SetReadDeadline(time.Now().Add(after)) != nil { // no deadlines on this system's pipes
		time.AfterFunc(after, func() { _ = pipe.Close() })
	}
}
