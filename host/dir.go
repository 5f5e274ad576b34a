package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sentinel-runtime/sentinel/host/internal/trust"
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

// checkFolders returns why the folders that definitions, recipes and plugins are
// loaded from may not be obeyed. Folders that are not there are not made here.
func (h *Host) checkFolders() error {
	folders := []string{h.dir, filepath.Join(h.dir, "sentinels"), filepath.Join(h.dir, "recipes"), filepath.Join(h.dir, "plugins")}
	if h.opt.Plugins != "" {
		folders = append(folders, h.opt.Plugins)
	}
	for _, dir := range folders {
		if _, err := os.Stat(dir); err != nil {
			continue // not there, or its reader reports why
		}
		if err := h.trust.Check(dir); err != nil {
			return err
		}
	}
	return nil
}

// makeState makes the state folder, private, and refuses one that others could have
// written to or that came with the project.
func makeState(state string, policy *trust.Policy) error {
	if err := policy.CheckFolder(state); err != nil {
		return fmt.Errorf("open state: %w", err)
	}
	if err := policy.Content().CheckState(state); err != nil {
		return fmt.Errorf("open state: %w", err)
	}
	if err := os.MkdirAll(state, 0o700); err != nil {
		return fmt.Errorf("open state: %w", err)
	}
	return nil
}

// ignoreState writes a .gitignore into the state folder, and one beside it, unless there are any: nothing of it belongs
// into a repository. The one inside ignores itself, so that no checkout of git removes it.
func ignoreState(dir, state string) error {
	if err := writeNew(filepath.Join(state, ".gitignore"), "*\n"); err != nil {
		return err
	}
	if filepath.Dir(state) != dir {
		return nil
	}
	return writeNew(filepath.Join(dir, ".gitignore"), "/state/\n")
}

// writeNew writes a file, unless there is one.
func writeNew(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(path)) // else it would be taken for the user's
	}
	return nil
}

// project returns the folder that is moved together with the state folder, see
// [runtime.Options.Project]: the one that has the served folder, if the state is in that.
func (h *Host) project() string {
	dir, err := filepath.Abs(h.dir)
	state, stateErr := filepath.Abs(h.state)
	if err != nil || stateErr != nil || !isWithin(state, dir) {
		return ""
	}
	return filepath.Dir(dir)
}
