// Package logfile writes the log of a process without a terminal: a
// file that is rotated by size and whose past is bounded by number and age.
package logfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Options bound a log. The zero value keeps 5 files of 16 MiB.
type Options struct {
	Size int64         // of a file when it is rotated, in bytes. Default 16 MiB
	Keep int           // rotated files that stay. Default 5
	Age  time.Duration // older rotated files go. Default 0, none do
	Now  func() time.Time
}

// A Writer appends to a log file.
//
// # Concurrency
//
// Safe for concurrent use. A write is in one file, whole: lines are not torn
// over two.
type Writer struct {
	path string
	opt  Options

	mu   sync.Mutex
	file *os.File
	size int64
}

var _ io.WriteCloser = (*Writer)(nil)

// Open opens the log at path, going on with what is there. Its folder is made.
// Logs may tell what people work on, so they are the user's alone.
func Open(path string, opt Options) (*Writer, error) {
	if opt.Size <= 0 {
		opt.Size = 16 << 20
	}
	if opt.Keep <= 0 {
		opt.Keep = 5
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	w := &Writer{path: path, opt: opt}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	if err := w.open(); err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	return w, w.prune()
}

func (w *Writer) open() error {
	f, err := os.OpenFile(w.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	w.file, w.size = f, info.Size()
	return nil
}

// Write appends p, rotating before it if the file would grow too large. When
// rotation fails the file grows on: a log that is too long is better than none.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file == nil {
		return 0, fs.ErrClosed
	}
	var failed error
	if w.size > 0 && w.size+int64(len(p)) > w.opt.Size {
		failed = w.rotate()
	}
	n, err := w.file.Write(p)
	w.size += int64(n)
	return n, errors.Join(err, failed)
}

// stamp sorts as time does.
const stamp = "20060102T150405.000000000"

// rotate gives the file a name of the past and begins a new one. If that cannot
// be opened the old one stays in use.
func (w *Writer) rotate() error {
	past := w.path + "." + w.opt.Now().UTC().Format(stamp)
	if err := os.Rename(w.path, past); err != nil {
		return err
	}
	old := w.file
	if err := w.open(); err != nil {
		return errors.Join(err, os.Rename(past, w.path))
	}
	return errors.Join(old.Close(), w.prune())
}

// prune removes rotated files that are too many or too old.
func (w *Writer) prune() error {
	entries, err := os.ReadDir(filepath.Dir(w.path))
	if err != nil {
		return err
	}
	var past []string
	for _, e := range entries {
		if tail, ok := strings.CutPrefix(e.Name(), filepath.Base(w.path)+"."); ok {
			if _, err := time.Parse(stamp, tail); err == nil {
				past = append(past, e.Name())
			}
		}
	}
	slices.Sort(past)
	var errs []error
	for i, name := range past {
		at, _ := time.Parse(stamp, strings.TrimPrefix(name, filepath.Base(w.path)+"."))
		if len(past)-i > w.opt.Keep || w.opt.Age > 0 && w.opt.Now().Sub(at) > w.opt.Age {
			errs = append(errs, os.Remove(filepath.Join(filepath.Dir(w.path), name)))
		}
	}
	return errors.Join(errs...)
}

// Close ends the log; later writes are refused. It is idempotent.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file == nil {
		return nil
	}
	err := w.file.Close()
	w.file = nil
	return err
}
