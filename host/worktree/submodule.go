package worktree

import (
	"context"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// submodulePaths returns the folders of submodules, as far as .gitmodules names them.
func (t *tree) submodulePaths(ctx context.Context) (paths []string) {
	a, err := t.exec(ctx, "", "config", "--null", "--blob", "HEAD:.gitmodules", "--get-regexp", `^submodule\..*\.path$`)
	if err != nil || a.Code != 0 {
		return nil
	}
	for _, entry := range strings.Split(a.Out, "\x00") {
		if _, name, ok := strings.Cut(entry, "\n"); ok && fs.ValidPath(name) && name != "." {
			paths = append(paths, name)
		}
	}
	return paths
}

// submodules returns the folders that stay empty, at most 100.
func (t *tree) submodules(ctx context.Context) (paths []string) {
	for _, name := range t.submodulePaths(ctx) {
		if len(paths) < 100 {
			paths = append(paths, textcut.Mark(name, 200))
		}
	}
	return paths
}

// filledSubmodules returns the folders of submodules that have files and are no repositories:
// what has been written there is of no repository, and git leaves it out silently.
func (t *tree) filledSubmodules(ctx context.Context) (filled []string, err error) {
	paths := t.submodulePaths(ctx)
	if len(paths) == 0 {
		return nil, nil
	}
	root, err := os.OpenRoot(t.Path)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	for _, name := range paths {
		if _, err := root.Lstat(path.Join(name, ".git")); err == nil {
			continue
		}
		entries, err := fs.ReadDir(root.FS(), name)
		if err != nil || len(entries) == 0 {
			continue
		}
		staged, err := t.must(ctx, "ls-files", "ls-files", "--stage", "--", gitexec.Literal+name)
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(staged, "160000 ") { // else its files are of this repository now
			filled = append(filled, name)
		}
	}
	return filled, nil
}

// inSubmodule is the error of files in the folder of a submodule.
func inSubmodule(name string) error {
	return &abi.Error{Code: abi.Conflict, Permanent: true, Message: "folder " + textcut.Mark(name, 200) + " is that of a submodule: its files belong to another repository and are not committed here",
		Hint: "move the files out of it; a change of the submodule needs a ticket of its own repository"}
}

// withoutCommit is what git says of a folder that is a repository without a commit.
var withoutCommit = lazyregexp.New(`(?m)^error: '(.*)/' does not have a commit checked out$`)

// emptyRepositories returns the folders that git has left out of the index because they are
// repositories without a commit.
func emptyRepositories(a gitexec.Answer) (names []string) {
	for _, found := range withoutCommit.FindAllStringSubmatch(a.Err, -1) {
		names = append(names, found[1])
	}
	slices.Sort(names)
	return slices.Compact(names)
}
