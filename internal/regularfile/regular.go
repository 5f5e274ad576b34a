// Package regularfile opens files that have to be regular ones.
//
// Opening a named pipe waits for a writer, without end and without regard to
// signals, and reading a device may never end or may change it. Every file of the
// host that other users, programs or repositories can put in a folder is therefore
// opened here: what is not a regular file is refused, and nothing waits.
package regularfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// ErrKind is the cause of an error about a pipe, socket, device or folder in place
// of a regular file.
var ErrKind = errors.New("want a regular file")

// ErrSize is the cause of an error about a file that is larger than its limit.
var ErrSize = errors.New("the file is too large")

// Open opens a regular file for reading and returns its state, which was read from
// the open file. Links are followed. The caller closes the file.
func Open(path string) (*os.File, fs.FileInfo, error) {
	// Some devices change when they are opened, so look first. What takes the
	// file's place after that is opened without waiting and refused below.
	info, err := os.Stat(path)
	if err == nil {
		err = Check(path, info)
	}
	if err != nil {
		return nil, nil, err
	}
	f, err := OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, nil, err
	}
	if info, err = f.Stat(); err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

// Within returns an error unless a file of a folder exists there: name and the links that it leads
// through must not lead out of the folder.
func Within(dir, name string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	_, err = root.Stat(name)
	return err
}

// OpenFile is [os.OpenFile] for a regular file. With os.O_CREATE it may not exist yet.
func OpenFile(path string, flag int, perm fs.FileMode) (*os.File, error) {
	if info, err := os.Stat(path); err == nil {
		if err := Check(path, info); err != nil {
			return nil, err
		}
	}
	f, err := os.OpenFile(path, flag|syscall.O_NONBLOCK, perm)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = Check(path, info)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// WriteFile is [os.WriteFile] for a regular file.
func WriteFile(path string, data []byte, perm fs.FileMode) error {
	f, err := OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// Unlimited is a limit of [Read] for files that only this program writes.
const Unlimited = 1 << 50

// Read returns the content of a regular file of at most limit bytes.
func Read(path string, limit int64) ([]byte, error) {
	f, _, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadAll(f, limit)
}

// maxGrow bounds what is allocated for the size that a file claims to have, in bytes.
const maxGrow = 64 << 20

// ReadAll returns what is left of an open file, of at most limit bytes. The cause of
// the error about more is [ErrSize].
func ReadAll(f *os.File, limit int64) ([]byte, error) {
	var b bytes.Buffer
	if info, err := f.Stat(); err == nil {
		b.Grow(int(min(info.Size(), limit, maxGrow)) + bytes.MinRead)
	}
	_, err := b.ReadFrom(io.LimitReader(f, limit+1))
	if err == nil && int64(b.Len()) > limit {
		return nil, &fs.PathError{Op: "read", Path: f.Name(), Err: fmt.Errorf("%w: more than %d bytes", ErrSize, limit)}
	}
	return b.Bytes(), err
}

// Check returns an error that names what is at path unless info is that of a
// regular file.
func Check(path string, info fs.FileInfo) error {
	var kind string
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		kind = "a folder"
	case mode&fs.ModeNamedPipe != 0:
		kind = "a named pipe"
	case mode&fs.ModeSocket != 0:
		kind = "a socket"
	case mode&fs.ModeSymlink != 0:
		kind = "a symbolic link"
	case mode&fs.ModeDevice != 0:
		kind = "a device"
	default:
		kind = "of no known kind"
	}
	return &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("it is %s, %w", kind, ErrKind)}
}

// List returns the paths of the files directly in dir whose names end with one of
// the suffixes, in the order of the suffixes, then of the names. Folders are left
// out; pipes and the like are not, so that their reader reports them. No dir means
// no files. Unlike [path/filepath.Glob] it takes the name of dir as it is, also with
// a bracket in it.
func List(dir string, suffixes ...string) ([]string, error) {
	entries, err := os.ReadDir(dir) // sorted
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var paths []string
	for _, suffix := range suffixes {
		for _, e := range entries {
			if !e.IsDir() && strings.HasSuffix(e.Name(), suffix) {
				paths = append(paths, filepath.Join(dir, e.Name()))
			}
		}
	}
	return paths, err
}
