package store

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const ballastFile = "ballast"

// MakeBallast keeps bytes of the disk in a file of the state folder, to be let
// go when the disk is full: so there is room for the last results. One that is
// there already stays. The file holds noise, because some file systems store
// zeros in no space at all.
func MakeBallast(path string, bytes int64) error {
	file := filepath.Join(path, ballastFile)
	if info, err := os.Stat(file); err == nil && info.Size() >= bytes {
		return nil
	}
	f, err := os.OpenFile(file+".tmp", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("make ballast: %w", err)
	}
	noise := make([]byte, 1<<20)
	for left := bytes; left > 0 && err == nil; left -= int64(len(noise)) {
		noise = noise[:min(left, int64(len(noise)))]
		rand.Read(noise) // never fails
		_, err = f.Write(noise)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(file+".tmp", file)
	}
	if err != nil {
		return fmt.Errorf("make ballast: %w", errors.Join(err, removeIfThere(file+".tmp")))
	}
	return nil
}

// DropBallast gives the ballast's room back; dropped is false if there is none.
func DropBallast(path string) (dropped bool, err error) {
	err = os.Remove(filepath.Join(path, ballastFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, removeIfThere(filepath.Join(path, ballastFile+".tmp"))
	}
	return err == nil, err
}
