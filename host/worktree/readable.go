package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
	"github.com/sentinel-runtime/sentinel/internal/textcut"
)

const (
	maxLeftOut = 20   // lines that name what is left out
	maxGitPath = 4000 // bytes of a path that git can open
	// maxDepth limits folders in each other. The walk opens each by its path, so that its time grows with the square
	// of the depth.
	maxDepth = 250
)

// stageReadable is stage before the files are removed: it makes them readable. What git still
// cannot read is left out and returned, a line for each; so are folders that have become
// repositories of their own, where a worktree is removed in any case.
func (t *tree) stageReadable(ctx context.Context, how resolve) (left []string, err error) {
	if err := t.enter(); err != nil {
		return nil, err
	}
	if err := t.inspectInner(ctx); err != nil {
		return nil, err
	}
	args := append(add[:len(add):len(add)], "--ignore-errors", "--", ".")
	a, err := t.exec(ctx, "", args...)
	var empty []string // repositories without a commit
	// Of a folder that it cannot read git only warns.
	if err != nil || a.Code != 0 || a.Err != "" {
		if left, err = t.unreadable(ctx); err != nil {
			return nil, err
		}
		// Folders that could not be read before may hold what git must not execute.
		if err := t.inspectInner(ctx); err != nil {
			return nil, err
		}
		if a, err = t.exec(ctx, "", args...); err != nil {
			return nil, err
		}
		empty = emptyRepositories(a)
		if a.Code != 0 && (a.Code != 1 || len(left)+len(empty) == 0) {
			return nil, gitexec.Fatal("add", a)
		}
	}
	inner, err := t.unstageRepositories(ctx)
	if err != nil {
		return nil, err
	}
	filled, err := t.filledSubmodules(ctx)
	if err != nil {
		return nil, err
	}
	inner = append(inner, empty...)
	switch {
	case how != unlessFailed:
	case len(inner) > 0:
		return nil, embedded(inner[0])
	case len(filled) > 0:
		return nil, inSubmodule(filled[0])
	}
	for _, name := range inner {
		left = append(left, line(name, "it is a git repository of its own"))
	}
	for _, name := range filled {
		left = append(left, line(name, "it is the folder of a submodule"))
	}
	if more := len(left) - maxLeftOut; more > 0 {
		left = append(left[:maxLeftOut], fmt.Sprintf("and %d more", more))
	}
	return left, nil
}

func line(name, why string) string { return fmt.Sprintf("%q: %s", textcut.Mark(name, 200), why) }

// enter gives the folder of the worktree the rights that a process needs to run in it.
func (t *tree) enter() error {
	dir, err := os.OpenRoot(t.s.dir(t.name))
	if err != nil {
		return err
	}
	defer dir.Close()
	return openFolder(dir, "tree")
}

// openFolder gives a folder the rights with which its owner lists and enters it.
func openFolder(dir *os.Root, name string) error {
	info, err := dir.Lstat(name)
	if err != nil || !info.IsDir() || info.Mode()&0o700 == 0o700 {
		return err
	}
	return dir.Chmod(name, info.Mode().Perm()|0o700)
}

// unreadable gives the files and folders of a worktree the rights to be read, and returns
// those that git would commit and that cannot be read, a line for each.
func (t *tree) unreadable(ctx context.Context) ([]string, error) {
	dir, err := os.OpenRoot(t.s.dir(t.name))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	lines := map[string]string{}
	// It opens one folder after the other, from dir, and follows no links.
	err = fs.WalkDir(dir.FS(), "tree", func(p string, e fs.DirEntry, err error) error {
		name := strings.TrimPrefix(p, "tree/")
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case e == nil:
			return err
		case e.IsDir() && len(p) > maxGitPath:
			lines[name] = line(name, "its path is too long for git")
			return fs.SkipDir
		case e.IsDir() && strings.Count(p, "/") > maxDepth:
			lines[name] = line(name, fmt.Sprintf("it has more than %d folders above it", maxDepth))
			return fs.SkipDir
		case err != nil: // of a folder: it could not be listed
			if errors.Is(err, fs.ErrPermission) {
				lines[name] = line(name, "permission denied")
			}
			return fs.SkipDir
		case e.IsDir():
			_ = openFolder(dir, p) // listing it fails if this does
		case e.Type().IsRegular():
			if !readable(dir, p) {
				if info, err := e.Info(); err == nil {
					_ = dir.Chmod(p, info.Mode().Perm()|0o400)
				}
				if !readable(dir, p) {
					lines[name] = line(name, "permission denied")
				}
			}
		}
		return nil
	})
	if err != nil || len(lines) == 0 {
		return nil, err
	}
	names := make([]string, 0, len(lines))
	for name := range lines {
		names = append(names, name)
	}
	slices.Sort(names)
	a, err := t.exec(ctx, strings.Join(names, "\x00"), "check-ignore", "--stdin", "-z")
	if err != nil {
		return nil, err
	}
	for name := range strings.SplitSeq(a.Out, "\x00") {
		delete(lines, name)
	}
	left := []string{}
	for _, name := range names {
		if text, ok := lines[name]; ok {
			left = append(left, text)
		}
	}
	return left, nil
}

// readable reports whether a regular file can be read, as far as its rights go.
func readable(dir *os.Root, name string) bool {
	f, err := dir.Open(name)
	if err == nil {
		f.Close()
	}
	return !errors.Is(err, fs.ErrPermission)
}
