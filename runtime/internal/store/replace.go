package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// A Hold keeps every process from opening a store, this one too.
type Hold struct {
	path string
	file *os.File // nil where there is no database file
}

// HoldStore takes the lock of the store in the state folder path without
// looking into it. If a process has it, that is a [*HeldError]. Where the
// system has no such lock, see that nobody opens the store.
func HoldStore(path string) (*Hold, error) {
	file, flag := filepath.Join(path, dbFile), filepath.Join(path, flagFile)
	f, err := os.OpenFile(file, os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return &Hold{path: path}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("hold store: %w", err)
	}
	if err := lockFile(f, true, lockWait); err != nil {
		f.Close()
		if errors.Is(err, errLocked) {
			return nil, heldBy(file, flag)
		}
		return nil, fmt.Errorf("hold store: %w", err)
	}
	return &Hold{path: path, file: f}, nil
}

// File is the path of the database file, "" if there is none.
func (h *Hold) File() string {
	if h.file == nil {
		return ""
	}
	return h.file.Name()
}

// Inspect reads the file that is held.
func (h *Hold) Inspect() (Inspection, error) {
	if h.file == nil {
		return Inspection{}, nil
	}
	return inspectFile(h.file)
}

// Replace puts the file fresh, a sound one, in the place of the database file,
// which is kept under the returned name. A crash leaves the one or the other in
// its place and never none: an empty store would be made there.
func (h *Hold) Replace(fresh, why string) (kept string, err error) {
	file := filepath.Join(h.path, dbFile)
	if h.file != nil {
		kept = file + "." + why + "-" + time.Now().UTC().Format("20060102T150405.000Z")
		if err := os.Link(file, kept); err != nil {
			// No hard links here: there is a moment without a file, and the one
			// that is kept has its name then.
			if err := os.Rename(file, kept); err != nil {
				return "", fmt.Errorf("replace store: %w", err)
			}
		}
	}
	if err := os.Rename(fresh, file); err != nil {
		return kept, fmt.Errorf("replace store: %w", err)
	}
	if err := syncDir(h.path); err != nil {
		return kept, fmt.Errorf("replace store: %w", err)
	}
	return kept, lowerFlag(filepath.Join(h.path, flagFile))
}

// Close lets go of the store.
func (h *Hold) Close() error {
	if h.file == nil {
		return nil
	}
	return h.file.Close()
}
