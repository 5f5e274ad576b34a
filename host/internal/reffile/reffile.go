// Package reffile says to which files a path in "$ref" of a definition file may lead.
package reffile

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/sentinel-runtime/sentinel/internal/regularfile"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Root returns the folder to whose files a definition in the folder dir may refer: the project if dir
// is in it, else dir itself. Without a project, project is "".
func Root(dir, project string) string {
	if rel, err := filepath.Rel(project, dir); project != "" && err == nil && filepath.IsLocal(rel) {
		return project
	}
	return dir
}

// Path returns the path of a file that a definition in the folder dir refers to by a name relative to dir, with
// slashes. The error is [fs.ErrNotExist] if there is none, and a [*sentinels.RefError] for a file outside of root or
// behind a link that leads out of it.
func Path(dir, root, name string) (string, error) {
	path := filepath.Join(dir, filepath.FromSlash(name))
	below, err := filepath.Rel(root, path)
	if err != nil || !filepath.IsLocal(below) {
		return "", Refused(name, fmt.Sprintf("is outside of %s", root))
	}
	if err := regularfile.Within(root, below); errors.Is(err, fs.ErrNotExist) {
		return "", err
	} else if err != nil {
		return "", Refused(name, "cannot be read: "+err.Error())
	}
	return path, nil
}

// Refused returns the error about a file that a definition names and must not refer to, or that cannot be read.
func Refused(name, why string) error {
	return sentinels.NewRefError(fmt.Sprintf("file %q in \"$ref\" %s", name, why),
		"a path leads to files of the project, or below the folder of a definition that is in none, and no link leads out of them")
}
