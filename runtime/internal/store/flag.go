package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/sentinel-runtime/sentinel/internal/regularfile"
)

// WasClosed reports whether the last owner closed the store in the state folder
// path, without opening it. It is true for a store that was never opened, and
// false while a process has the store open.
func WasClosed(path string) (bool, error) {
	_, err := os.Stat(filepath.Join(path, flagFile))
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return false, err
}

// writeFlag writes the owner's process id to the flag file and syncs it. exists
// says whether the last owner left a flag file. pending is true if the disk is
// too full and there is no flag file; then [DB.commit] must write it before the
// first commit.
func writeFlag(flag string, exists bool) (pending bool, err error) {
	text := []byte(fmt.Sprintf("%d %d\n", os.Getpid(), time.Now().Unix()))
	err = replaceFlag(flag, text)
	switch {
	case !IsFull(err):
		return false, err
	case !exists:
		return true, nil
	}
	// The flag file of the last owner exists and its space can be reused for
	// the new process id. If a power loss tears it, it is still a flag file. If
	// even this write fails, the flag file stays with the old process id.
	if err := overwrite(flag, text); err != nil && !IsFull(err) {
		return false, err
	}
	return false, nil
}

// replaceFlag writes the flag file atomically. On failure an existing one
// stays.
func replaceFlag(flag string, text []byte) error {
	if err := writeSynced(flag+".tmp", text); err != nil {
		return errors.Join(err, removeIfExists(flag+".tmp"))
	}
	if err := os.Rename(flag+".tmp", flag); err != nil {
		return err
	}
	return syncDir(filepath.Dir(flag))
}

// flagExists reports whether there is a flag file.
func flagExists(flag string) bool {
	_, err := os.Lstat(flag)
	return err == nil
}

// overwrite overwrites a file in place, without allocating new space.
func overwrite(path string, text []byte) error {
	f, err := regularfile.OpenFile(path, os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(text, 0)
	if err == nil {
		err = f.Truncate(int64(len(text)))
	}
	return errors.Join(err, f.Close())
}

// removeFlag removes the flag file. The removal is not synced: if the file is
// back after a power loss, the next owner inspects the store and nothing else
// happens.
func removeFlag(flag string) error {
	if err := os.Remove(flag); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// newHeldError returns a [*HeldError], with the holder if its flag file can be
// read.
func newHeldError(file, flag string) error {
	held := &HeldError{Path: file}
	text, err := regularfile.Read(flag, 1<<10)
	if err != nil {
		return held
	}
	var since int64
	if n, _ := fmt.Sscanf(string(text), "%d %d", &held.PID, &since); n == 2 {
		held.Since = time.Unix(since, 0)
	}
	return held
}
