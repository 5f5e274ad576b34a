// Package wholefile writes the files that a host shares with people and other
// processes: settings, locks, grants, exports. Whoever reads one, at any time and
// after any crash, finds the old content or the new one, never a part.
package atomicfile

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// The names of files that are not whole yet begin and end like this; watchers
// leave them out, and a host sweeps old ones away at its start.
const (
	TempPrefix = ".sentinel-"
	TempSuffix = ".tmp"
)

// Replace makes path a file with that content and returns when that is on the
// disk. A link in its place is replaced, not followed.
func Replace(path string, content []byte, mode fs.FileMode) error {
	temp, err := Temp(path, content, mode)
	if err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return SyncDir(filepath.Dir(path))
}

// Temp writes content to a new file beside path and returns its name, for those
// who put it into its place in a way of their own.
func Temp(path string, content []byte, mode fs.FileMode) (temp string, err error) {
	// In the same folder, since a rename is whole only within one file system, and
	// under a random name, where nobody can have put a link.
	temp = filepath.Join(filepath.Dir(path), TempPrefix+rand.Text()+TempSuffix)
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return "", err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(temp))
	}
	return temp, nil
}

// SyncDir has the disk know the names in a folder: a rename is whole in memory, and
// on the disk only after this. File systems that cannot are let be.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, fs.ErrInvalid) {
		return err
	}
	return nil
}
