package filewalk

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Errors of [ReadFile].
var (
	ErrNotRegular = errors.New("not a regular file")
	ErrReplaced   = errors.New("replaced while it was opened")
	ErrTooLarge   = errors.New("too large")
)

// ReadFile reads a regular file of at most limit bytes that a walk visited; info is
// that of its entry. A link, pipe or other file that has replaced it is not read.
func ReadFile(root *os.Root, name string, info fs.FileInfo, limit int64) ([]byte, error) {
	switch {
	case !info.Mode().IsRegular():
		return nil, ErrNotRegular
	case info.Size() > limit:
		return nil, ErrTooLarge
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	now, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !now.Mode().IsRegular() || !os.SameFile(now, info) {
		return nil, ErrReplaced
	}
	var data bytes.Buffer
	data.Grow(int(min(now.Size(), limit)) + bytes.MinRead) // io.ReadAll would read and copy in small pieces
	_, err = data.ReadFrom(io.LimitReader(f, limit+1))
	if err == nil && int64(data.Len()) > limit {
		return nil, ErrTooLarge
	}
	return data.Bytes(), err
}
