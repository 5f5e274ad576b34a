//go:build !linux && !darwin && !freebsd

package store

import (
	"io"
	"os"
)

func mapHead(f *os.File, _ int) (head io.ReaderAt, unmap func() error, err error) {
	return f, func() error { return nil }, nil
}
