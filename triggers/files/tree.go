package files

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// A tree accesses the files below a root. It is opened for each scan or check and
// closed after it, so that a replaced root is noticed.
type tree struct {
	path string
	root *os.Root // nil if not confined: links may lead anywhere
}

func openTree(path string, confined bool) (*tree, error) {
	if !confined {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			return nil, &fs.PathError{Op: "open", Path: path, Err: syscall.ENOTDIR}
		}
		return &tree{path: path}, nil
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return &tree{path: path, root: root}, nil
}

func (t *tree) close() {
	if t.root != nil {
		_ = t.root.Close() // only used for reading
	}
}

func (t *tree) native(rel string) string { return filepath.Join(t.path, filepath.FromSlash(rel)) }

func (t *tree) stat(rel string) (fs.FileInfo, error) {
	if t.root != nil {
		return t.root.Stat(rel)
	}
	return os.Stat(t.native(rel))
}

func (t *tree) lstat(rel string) (fs.FileInfo, error) {
	if t.root != nil {
		return t.root.Lstat(rel)
	}
	return os.Lstat(t.native(rel))
}

// open opens a file. It does not block on a named pipe without a writer.
func (t *tree) open(rel string) (*os.File, error) {
	const flags = os.O_RDONLY | syscall.O_NONBLOCK
	if t.root != nil {
		return t.root.OpenFile(rel, flags, 0)
	}
	return os.OpenFile(t.native(rel), flags, 0)
}

// list returns the entries of a folder, in no order.
func (t *tree) list(rel string) ([]fs.DirEntry, error) {
	dir, err := t.open(rel)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return dir.ReadDir(-1)
}

// read returns the content of a regular file of at most limit bytes.
func (t *tree) read(rel string, limit int64) ([]byte, error) {
	f, err := t.open(rel)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read %q: not a regular file", rel)
	}
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		return nil, fmt.Errorf("read %q: larger than %d bytes", rel, limit)
	}
	return b, err
}

// hash returns the digest of a file's content, and the file's state after the
// reading. quiet reports that the file was not written meanwhile.
func (t *tree) hash(rel string, limit int64) (sum [32]byte, after fs.FileInfo, quiet bool, err error) {
	f, err := t.open(rel)
	if err != nil {
		return sum, nil, false, err
	}
	defer f.Close()
	before, err := f.Stat()
	if err != nil {
		return sum, nil, false, err
	}
	if !before.Mode().IsRegular() { // the file was replaced
		return sum, nil, false, fmt.Errorf("read %q: not a regular file", rel)
	}
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(f, limit+1))
	if err != nil {
		return sum, nil, false, err
	}
	if after, err = f.Stat(); err != nil {
		return sum, nil, false, err
	}
	h.Sum(sum[:0])
	return sum, after, stampOf(before) == stampOf(after) && n == after.Size(), nil
}

// missing reports whether err means that the file does not exist. Other errors,
// such as a network file system that does not respond, leave that unknown.
func missing(err error) bool {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) {
		return true
	}
	// An error that is no errno is os.Root's refusal of a link that leads out of
	// the root, which counts as missing.
	var errno syscall.Errno
	return err != nil && !errors.As(err, &errno)
}
