package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sentinel-runtime/sentinel/internal/regularfile"
)

// syncDir fsyncs a folder, so that new and renamed files in it are durable.
func syncDir(dir string) error { return syncFile(dir) }

func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// writeSynced writes a private file and fsyncs it, but not its folder.
func writeSynced(path string, data []byte) error {
	f, err := regularfile.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// makeDirs creates a private folder and its missing parents, and syncs each
// parent: otherwise a power loss could remove the folder with everything
// committed in it.
func makeDirs(dir string) error {
	made, err := makeDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeDirs(filepath.Dir(dir)); err != nil {
			return err
		}
		made, err = makeDir(dir)
	}
	if err != nil || !made {
		return err
	}
	return syncDir(filepath.Dir(dir))
}

// makeDir creates a private folder; made is false if it existed.
func makeDir(dir string) (made bool, err error) {
	err = os.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	return err == nil, err
}
