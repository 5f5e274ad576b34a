package toolchain

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// withSDK calls build with a folder that has the project's files and the SDK in its
// folder sdk. That is the project itself, except for projects of this repository, which
// have no copy of the SDK: they are copied to a temporary folder, so that only the module
// is left.
func withSDK(dir string, sdk fs.FS, build func(dir string) error) error {
	switch info, err := os.Stat(filepath.Join(dir, "sdk")); {
	case err == nil && info.IsDir():
		return build(dir)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	whole, err := os.MkdirTemp("", "plugin-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(whole)
	if err := copySources(dir, whole); err != nil {
		return err
	}
	if err := copyFiles(sdk, filepath.Join(whole, "sdk"), func(s string) string { return s }); err != nil {
		return err
	}
	return build(whole)
}

// copySources copies a project without build results and hidden files.
func copySources(from, to string) error {
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		hidden := rel != "." && strings.HasPrefix(e.Name(), ".")
		switch {
		case e.IsDir() && (hidden || e.Name() == "target"):
			return filepath.SkipDir
		case e.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		case hidden || !e.Type().IsRegular() || filepath.Ext(path) == ".wasm":
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), text, 0o644)
	})
}
