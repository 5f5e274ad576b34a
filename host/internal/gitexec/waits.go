package gitexec

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// firstLook is how long a git runs before a pipe that it may wait for is searched. Nearly every git
// has ended by then, so the search costs those nothing; it sees also what is made while git runs.
const firstLook = time.Second

// readByGit are the files that git reads in each folder of a work tree.
var readByGit = []string{".gitattributes", ".gitignore", ".gitmodules", ".mailmap"}

// watchPipes searches dir for a file that git waits for without an end, after firstLook and then ever
// more rarely. It sends the error to found and calls end. The caller calls stop when git has ended.
func watchPipes(ctx context.Context, dir string, found chan<- error, end func()) (stop func()) {
	timer := time.AfterFunc(firstLook, func() {
		for pause := 2 * firstLook; ctx.Err() == nil; pause *= 2 {
			if name := findPipe(ctx, dir); name != "" {
				found <- &abi.Error{
					Code: abi.Denied, Permanent: true, Message: fmt.Sprintf("%q is a pipe or a device: git would wait for it", textcut.Mark(name, 200)), Hint: "remove it",
				}
				end()
				return
			}
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
		}
	})
	return func() { timer.Stop() }
}

// WorkTree returns the folder with a .git that an absolute path without links is in, the path itself
// included; "" for none.
func WorkTree(path string) string {
	for {
		if _, err := os.Lstat(filepath.Join(path, ".git")); err == nil {
			return path
		}
		above := filepath.Dir(path)
		if above == path {
			return ""
		}
		path = above
	}
}

// findPipe returns a pipe or device that git reads in the work tree that a folder is in, "" if it finds
// none.
func findPipe(ctx context.Context, dir string) (name string) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return ""
	}
	null, err := os.Stat(os.DevNull)
	if err != nil {
		return ""
	}
	top := cmp.Or(WorkTree(dir), dir)
	inGit := string(filepath.Separator) + ".git" + string(filepath.Separator)
	_ = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return fs.SkipAll
		case err != nil:
			return nil // git cannot read it either
		case d.IsDir() && strings.HasSuffix(path, inGit+"objects"):
			return fs.SkipDir
		case d.Type()&(fs.ModeNamedPipe|fs.ModeDevice) == 0 || !slices.Contains(readByGit, d.Name()) && !strings.Contains(path, inGit):
			return nil
		}
		if info, err := d.Info(); err == nil && !os.SameFile(info, null) { // a sandbox hides files behind it, and git reads nothing there
			name = path
			return fs.SkipAll
		}
		return nil
	})
	return name
}
