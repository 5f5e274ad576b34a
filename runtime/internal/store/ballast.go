package store

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sentinel-runtime/sentinel/internal/regularfile"
)

const ballastFile = "ballast"

// MakeBallast writes a file of the given size to the state folder. Deleting it
// when the disk is full gives space for the last results. A file that is large
// enough already stays. The content is random, because some file systems store
// zeros without using space.
func MakeBallast(path string, bytes int64) error {
	file := filepath.Join(path, ballastFile)
	if info, err := os.Stat(file); err == nil && info.Size() >= bytes {
		return nil
	}
	f, err := regularfile.OpenFile(file+".tmp", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("make ballast: %w", err)
	}
	noise := make([]byte, 1<<20)
	for left := bytes; left > 0 && err == nil; left -= int64(len(noise)) {
		noise = noise[:min(left, int64(len(noise)))]
		rand.Read(noise) // never returns an error
		_, err = f.Write(noise)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(file+".tmp", file)
	}
	if err != nil {
		return fmt.Errorf("make ballast: %w", errors.Join(err, removeIfExists(file+".tmp")))
	}
	return nil
}

// DropBallast deletes the ballast file. dropped is false if there was none.
func DropBallast(path string) (dropped bool, err error) {
	err = os.Remove(filepath.Join(path, ballastFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, removeIfExists(filepath.Join(path, ballastFile+".tmp"))
	}
	return err == nil, err
}
