// Package trash removes folders in the background.
//
// To delete the files of a clone takes longer than all that an attempt of a ticket does
// besides git, and no caller waits for the space. So a folder is renamed, which is one
// operation, and its files are deleted afterwards.
package trash

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
)

// A Bin removes folders. It may be used by several goroutines.
type Bin struct {
	Dir    string       // absolute folder of what is being deleted, on the file system of the folders; made when needed
	Logger *slog.Logger // default: no log

	working  sync.WaitGroup
	moving   sync.Mutex // making Dir and moving a folder there, or removing Dir
	deleting sync.Mutex
}

// Remove removes a folder: nothing is at its path when Remove returns, and its files are
// deleted in the background, with what an earlier process left in the bin. A path without a
// folder is not an error. A folder that cannot be renamed is deleted before Remove returns.
func (b *Bin) Remove(path string) error {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if !b.move(path) {
		return Delete(path)
	}
	b.working.Go(func() {
		if err := b.Empty(); err != nil && b.Logger != nil {
			b.Logger.Warn("folders that are not needed any more cannot be deleted", "path", b.Dir, "error", err)
		}
	})
	return nil
}

func (b *Bin) move(path string) bool {
	b.moving.Lock()
	defer b.moving.Unlock()
	return os.MkdirAll(b.Dir, 0o700) == nil && os.Rename(path, filepath.Join(b.Dir, rand.Text())) == nil
}

// Empty deletes what is in the bin.
func (b *Bin) Empty() error {
	b.deleting.Lock()
	defer b.deleting.Unlock()
	entries, err := os.ReadDir(b.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		err = errors.Join(err, Delete(filepath.Join(b.Dir, e.Name())))
	}
	b.moving.Lock()
	defer b.moving.Unlock()
	_ = os.Remove(b.Dir) // if nothing has been moved there meanwhile
	return err
}

// Close waits until the files are deleted. Calls of Remove must have returned.
func (b *Bin) Close() { b.working.Wait() }

// Delete deletes a folder with its files at once, also folders without the rights to do so:
// commands may have taken them away. A path without a folder is not an error.
func Delete(dir string) error {
	err := os.RemoveAll(dir)
	if err == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}
