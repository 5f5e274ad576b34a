package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// DirName is the folder that holds sentinels, plugins and state of a project.
const DirName = ".sentinel"

// FindDir returns the nearest .sentinel folder at or above workspace, or the
// one that would be made in it.
func FindDir(workspace string) string {
	abs, err := filepath.Abs(workspace)
	if err != nil {
		return filepath.Join(workspace, DirName)
	}
	for at := abs; ; at = filepath.Dir(at) {
		dir := filepath.Join(at, DirName)
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir
		}
		if filepath.Dir(at) == at {
			return filepath.Join(abs, DirName)
		}
	}
}

// makeState makes the folders. State is private and nothing of it belongs into
// a repository, so a .gitignore beside it says so.
func makeState(dir, state string) error {
	if err := os.MkdirAll(state, 0o700); err != nil {
		return fmt.Errorf("open state: %w", err)
	}
	if filepath.Dir(state) != dir {
		return nil
	}
	ignore := filepath.Join(dir, ".gitignore")
	f, err := os.OpenFile(ignore, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open state: %w", err)
	}
	defer f.Close()
	_, err = f.WriteString("/state/\n")
	return err
}
