// Package atomicfile replaces files atomically: it writes a temporary file, fsyncs
// it and renames it. A reader, also after a crash, finds the old content or the
// new one, never a part. It is for files that a host shares with users and other
// processes: settings, locks, grants, exports.
package atomicfile

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// TempPrefix and TempSuffix are the start and end of the names of temporary files.
// Watchers ignore these files, and a host removes old ones at its start.
const (
	TempPrefix = ".sentinel-"
	TempSuffix = ".tmp"
)

// Replace atomically writes content to path, durably when it returns. A symbolic
// link at path is replaced, not followed.
func Replace(path string, content []byte, mode fs.FileMode) error {
	return Write(path, mode, whole(content))
}

// Write is [Replace] with the content that write gives a new file. After an error of it the
// old content stays.
func Write(path string, mode fs.FileMode, write func(*os.File) error) error {
	temp, err := tempWith(path, mode, write)
	if err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return SyncDir(filepath.Dir(path))
}

// Temp writes content to a temporary file in the folder of path, fsyncs it and
// returns its name, for callers that rename or link it themselves.
func Temp(path string, content []byte, mode fs.FileMode) (temp string, err error) {
	return tempWith(path, mode, whole(content))
}

// whole writes content.
func whole(content []byte) func(*os.File) error {
	return func(f *os.File) error {
		_, err := f.Write(content)
		return err
	}
}

func tempWith(path string, mode fs.FileMode, write func(*os.File) error) (temp string, err error) {
	// In the same folder, because a rename is atomic only within one file system, and
	// under a random name, so that no other process can put a link there first.
	temp = filepath.Join(filepath.Dir(path), TempPrefix+rand.Text()+TempSuffix)
	f, err := os.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return "", err
	}
	if err = write(f); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(temp))
	}
	return temp, nil
}

// SyncDir fsyncs dir so that renames in it are durable. It ignores the error of a
// file system that does not support it.
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
