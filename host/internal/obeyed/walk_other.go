//go:build !unix

package obeyed

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// A fileID is the identity of a file.
type fileID struct{ info fs.FileInfo }

func (id fileID) same(other fileID) bool { return os.SameFile(id.info, other.info) }

// A searched is the path of a folder.
type searched string

func (s searched) exists(name string) bool {
	_, err := os.Lstat(filepath.Join(string(s), name))
	return err == nil
}

func (s searched) rename(from, to string) error {
	return os.Rename(filepath.Join(string(s), from), filepath.Join(string(s), to))
}

// walk calls found for each repository, with the folder that it is in. Those inside of another one
// are not visited, and no link is followed. An error does not end the walk, but
// the end of the context does. No wall of confinement
// exists on these systems, so that paths are enough.
func (all *Set) walk(ctx context.Context, found func(dir holder, one *entry) (enter string)) error {
	var failed named
	err := filepath.WalkDir(all.root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			failed.add(fmt.Sprintf("%s: %v", all.relative(path), err))
			return nil
		case path == all.root:
			return nil
		case all.hidden(path) && e.IsDir():
			return fs.SkipDir
		case !all.named(e.Name()) || all.hidden(path):
			return nil
		}
		if info, err := e.Info(); err == nil { // else it is gone
			one := &entry{path: path, id: fileID{info}, kind: info.Mode().Type()}
			if one.isLink() {
				one.link, _ = os.Readlink(path) // likewise
			}
			found(searched(filepath.Dir(path)), one)
		}
		if e.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	if err == nil && len(failed.first) > 0 {
		err = fmt.Errorf("find repositories in folders of %q: %s", all.root, &failed)
	}
	return err
}
