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

// A tree is the files below a root at this moment. It is opened for each piece
// of work and closed behind it, so a root that was replaced is seen as it is.
type tree struct {
	path string
	root *os.Root // nil: links may lead anywhere
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
		_ = t.root.Close() // it was only read from
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

// open opens a file without waiting for a writer, should it be a pipe by now.
func (t *tree) open(rel string) (*os.File, error) {
	const flags = os.O_RDONLY | syscall.O_NONBLOCK
	if t.root != nil {
		return t.root.OpenFile(rel, flags, 0)
	}
	return os.OpenFile(t.native(rel), flags, 0)
}

// list returns what is in a folder, in no order.
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
		return nil, fmt.Errorf("read %q: it is no regular file", rel)
	}
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		return nil, fmt.Errorf("read %q: it has more than %d bytes", rel, limit)
	}
	return b, err
}

// hash returns the digest of a file's content, and the file's state when its
// last byte was read. quiet says that nothing was written meanwhile.
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

// missing reports whether err says that there is no such file. Other errors,
// such as a file system that does not answer, say nothing about the file.
func missing(err error) bool {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) {
		return true
	}
	// What does not come from the system is os.Root's refusal of a link that
	// leads out: for the watcher, nothing is there.
	var errno syscall.Errno
	return err != nil && !errors.As(err, &errno)
}
