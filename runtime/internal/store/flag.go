package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// WasClosed reports whether the store in the state folder path was closed by
// its last owner, without opening it; a store that was never opened counts as
// closed. While some process has it open the answer is false.
func WasClosed(path string) (bool, error) {
	_, err := os.Stat(filepath.Join(path, flagFile))
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return false, err
}

// raiseFlag writes the owner's process id durably and reports whether a flag
// was there already.
func raiseFlag(flag string) (was bool, err error) {
	if _, err := os.Lstat(flag); err == nil {
		was = true
	}
	text := fmt.Sprintf("%d %d\n", os.Getpid(), time.Now().Unix())
	err = writeSynced(flag+".tmp", []byte(text))
	if was && IsFull(err) {
		// A full disk must not keep the store closed. The file has room for
		// this; torn by a power loss it is a flag all the same.
		return was, errors.Join(removeIfThere(flag+".tmp"), overwrite(flag, []byte(text)))
	}
	if err != nil {
		return was, errors.Join(err, removeIfThere(flag+".tmp"))
	}
	if err := os.Rename(flag+".tmp", flag); err != nil {
		return was, err
	}
	return was, syncDir(filepath.Dir(flag))
}

// overwrite writes over the beginning of a file, in the room it has.
func overwrite(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(text, 0)
	if err == nil {
		err = f.Truncate(int64(len(text)))
	}
	return errors.Join(err, f.Close())
}

// lowerFlag removes the flag. It need not be synced: a flag that comes back
// after a power loss costs the next owner a check and no more.
func lowerFlag(flag string) error {
	if err := os.Remove(flag); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// heldBy names the holder as far as its flag tells.
func heldBy(file, flag string) error {
	held := &HeldError{Path: file}
	text, err := os.ReadFile(flag)
	if err != nil {
		return held
	}
	var since int64
	if n, _ := fmt.Sscanf(string(text), "%d %d", &held.PID, &since); n == 2 {
		held.Since = time.Unix(since, 0)
	}
	return held
}
