package sentinel

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
)

// sum is the digest of a file as plugins have it.
func sum(content []byte) string {
	s := sha256.Sum256(content)
	return hex.EncodeToString(s[:])
}

// putFile makes name a file with that content, whole or not at all, and returns
// when that is on the disk. Without replace, a file that somebody made there
// meanwhile stays and is the error [fs.ErrExist].
func putFile(root *os.Root, name string, content []byte, replace bool) (err error) {
	dir := path.Dir(name)
	if err := root.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	// The name is one that watchers of such folders leave out.
	temp := path.Join(dir, ".sentinel-"+rand.Text()+".tmp")
	f, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer func() {
		if gone := root.Remove(temp); err == nil && gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = gone
		}
	}()
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if replace {
		err = root.Rename(temp, name)
	} else {
		err = root.Link(temp, name) // unlike a rename it replaces nothing
	}
	if err != nil {
		return err
	}
	return syncFolder(root, dir)
}

// syncFolder brings a new name to the disk. Some file systems have no such
// thing.
func syncFolder(root *os.Root, dir string) error {
	d, err := root.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, fs.ErrInvalid) {
		return fmt.Errorf("sync %q: %w", dir, err)
	}
	return nil
}
