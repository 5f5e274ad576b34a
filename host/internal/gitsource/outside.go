package gitsource

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Open returns the git directory of a repository of this machine, as git finds it, for a git that reads
// that very directory and does not search. It returns an error for a repository that has git read
// objects, references or settings outside of it: by symbolic links, by a file .git or commondir that is
// not that of a worktree or submodule, or by alternates. With them, an unpacked or planted repository
// would give the commands of its checks what is in another one of the user. Folders of m.Read may be
// led to. Only git reads its own formats here: a second reader would understand some of them in another
// way. What git cannot read is refused too.
func (m *Mirrors) Open(ctx context.Context, repo string) (string, error) {
	top, err := filepath.EvalSymlinks(repo)
	if err != nil {
		return "", noRepository(repo)
	}
	o := outside{git: m.Git, repo: repo, inside: []string{top}}
	for _, dir := range m.Read {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			o.read = append(o.read, real)
		}
	}
	at := top
	if _, err := os.Lstat(filepath.Join(top, ".git")); !errors.Is(err, fs.ErrNotExist) {
		at = filepath.Join(top, ".git")
	}
	if err := checkFiles(repo, top, at); err != nil {
		return "", err
	}
	git, common, err := o.folders(ctx, at)
	if err != nil {
		return "", err
	}
	if err := o.references(ctx, git); err != nil {
		return "", err
	}
	if err := checkFiles(repo, git, common); err != nil {
		return "", err
	}
	if err := o.belongs(ctx, at, git, common); err != nil {
		return "", err
	}
	o.inside = append(o.inside, git, common)
	for _, path := range []string{filepath.Join(git, "HEAD"), "HEAD", "config", "packed-refs", "shallow", "info", "refs", "objects", "lfs"} {
		if !filepath.IsAbs(path) {
			path = filepath.Join(common, path)
		}
		if err := o.links(path); err != nil {
			return "", err
		}
	}
	return git, o.alternates(ctx, git, filepath.Join(common, "objects", "info", "alternates"))
}

// outside looks for what leads out of a repository.
type outside struct {
	git    gitexec.Runner
	repo   string
	inside []string // real folders of the repository
	read   []string // real folders that it may lead to

	followed []string // real paths in the repository that its links lead to
}

func (o *outside) has(real string) bool { return isBelow(o.inside, real) || isBelow(o.read, real) }

func isBelow(dirs []string, real string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool {
		rel, err := filepath.Rel(dir, real)
		return err == nil && filepath.IsLocal(rel)
	})
}

func (o *outside) refuse(path, target, hint string) error {
	return &abi.Error{
		Code: abi.Denied, Permanent: true, Field: "repo_url",
		Message: fmt.Sprintf("repository %s: %s leads to %q, which is outside of it", o.repo, path, target),
		Hint:    hint + "if agents, models and commands of checks may read that folder: add it to verify.read",
	}
}

// unusual is the error of a path that git prints in quotes or over several lines.
func (o *outside) unusual(path string) error {
	return &abi.Error{
		Code: abi.Denied, Permanent: true, Field: "repo_url",
		Message: fmt.Sprintf("repository %s: %s leads to a path with a quote or a control character", o.repo, path),
	}
}

func noRepository(repo string) error {
	return &abi.Error{Code: abi.NotFound, Permanent: true, Field: "repo_url", Message: repo + " is not a git repository"}
}

// exec executes git for one git directory.
func (o *outside) exec(ctx context.Context, dir string, args ...string) (gitexec.Answer, error) {
	a, err := o.git.Exec(ctx, dir, "", "", append([]string{"--git-dir=" + dir}, args...)...)
	if err == nil && a.Cut {
		err = gitexec.Fatal(args[0], a)
	}
	return a, err
}

// folders returns the real git directory at a path, and that with its objects and references.
func (o *outside) folders(ctx context.Context, at string) (git, common string, err error) {
	args := []string{"--git-dir=" + at, "rev-parse", "--path-format=absolute", "--absolute-git-dir", "--git-common-dir"}
	a, err := o.git.Exec(ctx, o.inside[0], "", "", args...)
	switch {
	case err != nil:
		return "", "", err
	case a.Code != 0 && strings.Contains(a.Err, "not a git repository"):
		return "", "", noRepository(o.repo)
	case a.Code != 0:
		return "", "", Failed("rev-parse", Repository{URL: o.repo, Local: o.repo}, "", "", a)
	}
	lines := strings.Split(strings.TrimSuffix(strings.ReplaceAll(a.Out, "\r\n", "\n"), "\n"), "\n")
	if len(lines) != 2 {
		return "", "", o.unusual(at)
	}
	for i, line := range lines {
		if lines[i], err = filepath.EvalSymlinks(filepath.FromSlash(line)); err != nil {
			return "", "", noRepository(o.repo)
		}
	}
	return lines[0], lines[1], nil
}

// belongs returns an error for a git directory elsewhere that does not name the folder of the
// repository as one of its worktrees, or as the work tree of its submodule.
func (o *outside) belongs(ctx context.Context, at, git, common string) error {
	switch {
	case o.has(git) && o.has(common):
		return nil
	case o.has(git):
		return o.refuse(filepath.Join(git, "commondir"), common, "")
	}
	top, trees := o.inside[0], []string{}
	if a, err := o.exec(ctx, git, "config", "--local", "--get", "core.worktree"); err != nil {
		return err
	} else if path := strings.TrimRight(a.Out, "\r\n"); a.Code == 0 && path != "" && git == common {
		if !filepath.IsAbs(path) {
			path = filepath.Join(git, path)
		}
		trees = append(trees, path)
	}
	if filepath.Dir(git) == filepath.Join(common, "worktrees") {
		a, err := o.exec(ctx, common, "worktree", "list", "--porcelain")
		if err != nil {
			return err
		}
		for line := range strings.Lines(a.Out) {
			if path, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "worktree "); ok && a.Code == 0 {
				trees = append(trees, filepath.FromSlash(path))
			}
		}
	}
	for _, tree := range trees {
		if real, err := filepath.EvalSymlinks(tree); err == nil && real == top {
			return nil
		}
	}
	return o.refuse(at, git, "")
}

// references returns an error for a repository whose settings name a place for its references: git 2.55
// and newer reads them there. Older ones refuse such a repository, or read the references that it has.
func (o *outside) references(ctx context.Context, git string) error {
	a, err := o.exec(ctx, git, gitexec.ListConfig...)
	if err != nil {
		return err
	}
	for e := range gitexec.Config(a.Out) {
		if e.OfRepository() && e.Key == "extensions.refstorage" && strings.Contains(e.Value, ":") {
			return &abi.Error{
				Code: abi.Denied, Permanent: true, Field: "repo_url",
				Message: fmt.Sprintf("repository %s: its references are elsewhere: extensions.refStorage is %q", o.repo, e.Value),
			}
		}
	}
	return nil
}

// links refuses symbolic links at a path and below it that lead out of the repository, and what hides
// some: git opens files by their names also in a folder that cannot be listed.
func (o *outside) links(path string) error {
	return filepath.WalkDir(path, func(at string, e fs.DirEntry, err error) error {
		if err == nil && e.Type()&fs.ModeSymlink == 0 {
			return nil
		}
		real := at
		if err == nil {
			real, err = filepath.EvalSymlinks(at)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist): // also of a link that leads nowhere
			return nil
		case err != nil:
			return &abi.Error{
				Code: abi.Denied, Permanent: true, Field: "repo_url",
				Message: fmt.Sprintf("repository %s: where links of %s lead cannot be read: %v", o.repo, at, err),
			}
		case !o.has(real):
			return o.refuse(at, real, "")
		case isBelow(o.read, real) || slices.Contains(o.followed, real):
			return nil
		}
		o.followed = append(o.followed, real)
		return o.links(real)
	})
}

// alternates refuses folders of objects outside of the repository that git borrows from, also by
// way of others. file is named in the error.
func (o *outside) alternates(ctx context.Context, git, file string) error {
	a, err := o.exec(ctx, git, "count-objects", "-v")
	if err == nil && a.Code != 0 {
		err = Failed("count-objects", Repository{URL: o.repo, Local: o.repo}, "", "", a)
	}
	if err != nil {
		return err
	}
	for line := range strings.Lines(a.Out) {
		path, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "alternate: ")
		if !ok {
			continue
		}
		if strings.HasPrefix(path, `"`) { // git quotes what has a quote or a control character
			return o.unusual(file)
		}
		real, err := filepath.EvalSymlinks(filepath.FromSlash(path))
		if err != nil {
			real = path
		}
		if err != nil || !o.has(real) {
			return o.refuse(file, real, "to copy what it borrows: git -C "+gitexec.Quote(o.repo)+" repack -a -d, then remove that file; ")
		}
		if isBelow(o.read, real) {
			continue
		}
		if err := o.links(real); err != nil {
			return err
		}
	}
	return nil
}
