package host

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// gitName is the name by which git finds a repository in a folder and those below it.
const gitName = ".git"

// refusedName begins the names of repositories that a confined command has left.
const refusedName = ".git.refused-"

// maxLevels bounds the folders in each other in which repositories are looked for.
const maxLevels = 200

// repositories are the files, folders and links with [gitName] in a workspace. Git executes
// programs that their settings name, for everyone who calls it there. So a confined command
// cannot write those that exist, and those that it makes are renamed when it has ended.
type repositories struct {
	root  string   // without links
	hide  []string // paths that the command cannot reach
	known []gitEntry
}

// A gitEntry is a file, folder or link with gitName.
type gitEntry struct {
	path string
	info fs.FileInfo
	link string // what a link leads to
}

func (r gitEntry) same(other gitEntry) bool {
	return os.SameFile(r.info, other.info) && r.link == other.link && r.info.Mode().Type() == other.info.Mode().Type()
}

// findRepositories finds those that exist before a command begins.
func findRepositories(root string, hide []string) (*repositories, error) {
	all := &repositories{root: root, hide: hide}
	return all, all.walk(func(_ *os.Root, one gitEntry) error {
		all.known = append(all.known, one)
		return nil
	})
}

// steering returns the files and folders below the root that steer git in the repositories.
func (all *repositories) steering() (list []string) {
	for _, one := range all.known {
		if one.info.Mode()&fs.ModeSymlink == 0 || filepath.Dir(one.path) == all.root {
			list = append(list, gitFolders(filepath.Dir(one.path))...)
		} else if real, err := filepath.EvalSymlinks(one.path); err == nil && strings.HasPrefix(real, all.root+string(filepath.Separator)) {
			list = append(list, real)
		}
	}
	return list
}

// refuseNew renames the repositories that were not there before, so that no git takes them for some.
// The error names them.
func (all *repositories) refuseNew() error {
	var names []string
	err := all.walk(func(dir *os.Root, one gitEntry) error {
		if slices.ContainsFunc(all.known, one.same) {
			return nil
		}
		name, err := filepath.Rel(all.root, one.path)
		if err != nil {
			return err
		}
		names = append(names, fmt.Sprintf("%q", name))
		for n := 1; ; n++ {
			to := fmt.Sprintf("%s%d", refusedName, n)
			if _, err := dir.Lstat(to); err == nil {
				continue
			}
			if err := dir.Rename(filepath.Base(one.path), to); err != nil {
				return fmt.Errorf("rename the repository %q that a confined command has made: %w; remove it before git is executed there", name, err)
			}
			return nil
		}
	})
	if len(names) > 0 {
		const most = 10
		more := ""
		if len(names) > most {
			names, more = names[:most], fmt.Sprintf(" and %d more", len(names)-most)
		}
		const why = "a confined command cannot make repositories in the workspace, whose settings name programs: " +
			"%s%s renamed to %s1 and so on; commit by code/git, or rename what you trust"
		err = errors.Join(fmt.Errorf(why, strings.Join(names, ", "), more, refusedName), err)
	}
	return err
}

// walk calls fn for each repository, with the folder that it is in. Those inside of another one are
// not visited, and no link is followed.
func (all *repositories) walk(fn func(dir *os.Root, one gitEntry) error) error {
	dir, err := os.OpenRoot(all.root)
	if err != nil {
		return err
	}
	defer dir.Close()
	return all.walkFolder(dir, all.root, maxLevels, fn)
}

func (all *repositories) walkFolder(dir *os.Root, path string, levels int, fn func(*os.Root, gitEntry) error) error {
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		entries, err := f.ReadDir(1000)
		for _, e := range entries {
			if err := all.entry(dir, path, e, levels, fn); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (all *repositories) entry(dir *os.Root, path string, e fs.DirEntry, levels int, fn func(*os.Root, gitEntry) error) error {
	full := filepath.Join(path, e.Name())
	isGit := strings.EqualFold(e.Name(), gitName) // some file systems do not distinguish
	if !isGit && !e.IsDir() || slices.Contains(all.hide, full) {
		return nil
	}
	if isGit {
		one := gitEntry{path: full}
		var err error
		if one.info, err = dir.Lstat(e.Name()); err != nil {
			return gone(err)
		}
		if one.info.Mode()&fs.ModeSymlink != 0 {
			if one.link, err = dir.Readlink(e.Name()); err != nil {
				return gone(err)
			}
		}
		return fn(dir, one)
	}
	if levels == 0 {
		return fmt.Errorf("folder %q is in more than %d others, so that repositories in it are not found: remove it", full, maxLevels)
	}
	below, close, err := enter(dir, e.Name())
	if err != nil || below == nil {
		return err
	}
	defer close()
	return all.walkFolder(below, full, levels-1, fn)
}

// enter opens a folder. One of the user that cannot be read, because its mode forbids it, is opened
// nevertheless; another one has nothing of a command of this user.
func enter(dir *os.Root, name string) (below *os.Root, done func(), err error) {
	restore := func() {}
	info, err := dir.Lstat(name)
	if err != nil || !info.IsDir() {
		return nil, nil, gone(err)
	}
	if mode := info.Mode().Perm(); mode&0o500 != 0o500 {
		if dir.Chmod(name, mode|0o700) == nil {
			restore = func() { _ = dir.Chmod(name, info.Mode()&(fs.ModePerm|fs.ModeSticky|fs.ModeSetgid|fs.ModeSetuid)) } // it may be gone
		}
	}
	if below, err = dir.OpenRoot(name); err != nil {
		restore()
		if errors.Is(err, fs.ErrPermission) {
			return nil, nil, nil
		}
		return nil, nil, gone(err)
	}
	return below, func() { below.Close(); restore() }, nil
}

// gone returns an error that is not that of a file that another program has removed or replaced.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
