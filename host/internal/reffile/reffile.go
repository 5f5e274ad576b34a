// Package reffile says to which files a "$ref" of a definition file may lead.
package reffile

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/sentinel-runtime/sentinel/host/internal/rootfs"
	"github.com/sentinel-runtime/sentinel/internal/regularfile"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A Finder finds the files to which a definition refers, and those that these refer to in turn.
type Finder struct {
	Base string // folder of the first definition
	Host string // folder with the definitions and recipes of the host, which is in its project; "" without a project
}

// Find returns the path of the first of files that exists; they are relative to Base, with slashes. from is the folder of the
// definition that refers to them, named says that it names the one file: see [sentinels.Beside]. One in a folder of the host's
// definitions has the files of that folder alone: they are those that the user is asked about, and that no model writes. One
// elsewhere, which is executed because a user named it, has those of the project, or below Base if that is not in the project.
// The error is [fs.ErrNotExist] if there is none, and a [*sentinels.RefError] for a named file that is none of these, and for
// one behind a link that leads out of them.
func (f Finder) Find(from string, files []string, named bool) (string, error) {
	dir := filepath.Join(f.Base, filepath.FromSlash(from))
	alone := f.ofHost(dir) || f.ofHost(rootfs.EvalLinks(dir))
	root := f.Base
	if alone {
		root = dir
	} else if project := filepath.Dir(f.Host); f.Host != "" && within(project, f.Base) {
		root = project
	}
	for _, name := range files {
		path := filepath.Join(f.Base, filepath.FromSlash(name))
		if !within(root, path) || alone && filepath.Dir(path) != dir {
			if !named {
				continue
			}
			if alone {
				return "", sentinels.NewRefError(fmt.Sprintf("file %q in \"$ref\" is not in the folder of the definition that names it", name),
					fmt.Sprintf("move it to %s, and write %q: sentinel trust asks about the files of that folder, and no model writes them", dir, "./"+filepath.Base(path)))
			}
			return "", Refused(name, fmt.Sprintf("is outside of %s", root))
		}
		below, err := filepath.Rel(root, path)
		if err == nil {
			err = regularfile.Within(root, below)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return "", Refused(name, "cannot be read: "+err.Error())
		}
		return path, nil
	}
	return "", fs.ErrNotExist
}

// ofHost reports whether a folder is in one of definitions or recipes of a host, or is one.
func (f Finder) ofHost(dir string) bool {
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if above := filepath.Dir(dir); slices.Contains([]string{"sentinels", "recipes"}, filepath.Base(dir)) &&
			(slices.Contains([]string{".sentinel", ".continuum"}, filepath.Base(above)) || f.Host != "" && rootfs.EvalLinks(above) == rootfs.EvalLinks(f.Host)) {
			return true
		}
	}
	return false
}

func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// Refused returns the error about a file that a definition names and must not refer to, or that cannot be read.
func Refused(name, why string) error {
	return sentinels.NewRefError(fmt.Sprintf("file %q in \"$ref\" %s", name, why),
		"a path leads to files of the project, or below the folder of a definition that is in none, and no link leads out of them")
}
