package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/sentinel-runtime/sentinel/internal/regularfile"
)

// A Hold is the exclusive lock of a store. It keeps all processes, including
// this one, from opening the store.
type Hold struct {
	path string
	file *os.File // nil if there is no database file
}

// HoldStore takes the lock of the store in the state folder path without
// reading the store. If a process has the store open, the error is a
// [*HeldError], and for a state folder of a newer format a [*FormatError]. On systems without such a lock the caller must make sure that
// no process opens the store.
func HoldStore(path string) (*Hold, error) {
	if err := checkFolderFormat(path); err != nil {
		return nil, err
	}
	file, flag := filepath.Join(path, dbFile), filepath.Join(path, flagFile)
	f, err := regularfile.OpenFile(file, os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return &Hold{path: path}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("hold store: %w", err)
	}
	if err := lockFile(f, true, lockWait); err != nil {
		f.Close()
		if errors.Is(err, errLocked) {
			return nil, newHeldError(file, flag)
		}
		return nil, fmt.Errorf("hold store: %w", err)
	}
	return &Hold{path: path, file: f}, nil
}

// File returns the path of the database file, "" if there is none.
func (h *Hold) File() string {
	if h.file == nil {
		return ""
	}
	return h.file.Name()
}

// Inspect inspects the locked file.
func (h *Hold) Inspect() (Inspection, error) {
	if h.file == nil {
		return inspectMissing(h.path, "the file is missing"), nil
	}
	return inspectStore(context.Background(), h.path, h.file)
}

// Replace renames the sound file fresh to the name of the database file, which
// it keeps under the returned name. After a crash one of the two has that name:
// without a file there, Open would create an empty store or report a lost one.
func (h *Hold) Replace(fresh, why string) (kept string, err error) {
	file := filepath.Join(h.path, dbFile)
	if h.file != nil {
		kept = file + "." + why + "-" + time.Now().UTC().Format("20060102T150405.000Z")
		if err := os.Link(file, kept); err != nil {
			// The file system has no hard links. So for a moment the database
			// file exists only under the name kept.
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
	return kept, removeFlag(filepath.Join(h.path, flagFile))
}

// Close releases the lock.
func (h *Hold) Close() error {
	if h.file == nil {
		return nil
	}
	return h.file.Close()
}
