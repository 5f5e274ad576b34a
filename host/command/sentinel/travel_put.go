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
	// A project may be read by others; what is secret is in no definition.
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
		// Gone already after a rename; left over after a link or an error.
		if gone := root.Remove(temp); err == nil && gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = gone
		}
	}()
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	// All of it is on the disk before it has its name: after a crash there is the
	// old file or the new one.
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	// Whether it is replaced was decided on a look that may be a while ago. A rename
	// would replace what came since; a link tells.
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
// Without it a crash may take the name back.
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
