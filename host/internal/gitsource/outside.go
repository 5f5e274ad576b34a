package gitsource

import (
	"bufio"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
	"github.com/sentinel-runtime/sentinel/host/internal/regularfile"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// maxAlternates is how many repositories in a row git borrows objects from.
const maxAlternates = 5

// CheckInside returns an error for a repository of this machine that has git read objects,
// references or settings outside of it: by symbolic links, by a file .git or commondir that is not
// that of a worktree or submodule, or by alternates. With them, an unpacked or planted repository
// would give the commands of its checks what is in another one of the user. Folders of read may be
// led to.
func CheckInside(repo string, read []string) error {
	top, err := filepath.EvalSymlinks(repo)
	if err != nil {
		return nil //nolint:nilerr // git says that it is not there
	}
	o := outside{repo: repo, inside: []string{top}}
	for _, dir := range read {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			o.read = append(o.read, real)
		}
	}
	git, err := o.gitDir(top)
	if err != nil {
		return err
	}
	common, err := o.commonDir(git)
	if err != nil {
		return err
	}
	o.inside = append(o.inside, git, common)
	for _, path := range []string{filepath.Join(git, "HEAD"), "HEAD", "config", "packed-refs", "shallow", "info", "refs", "objects", "lfs"} {
		if !filepath.IsAbs(path) {
			path = filepath.Join(common, path)
		}
		if err := o.links(path); err != nil {
			return err
		}
	}
	return o.alternates(filepath.Join(common, "objects"), maxAlternates)
}

// outside looks for what leads out of a repository.
type outside struct {
	repo   string
	inside []string // real folders of the repository
	read   []string // real folders that it may lead to
}

func (o *outside) has(real string) bool {
	return slices.ContainsFunc(slices.Concat(o.inside, o.read), func(dir string) bool {
		rel, err := filepath.Rel(dir, real)
		return err == nil && filepath.IsLocal(rel)
	})
}

func (o *outside) refuse(path, target, hint string) error {
	return &abi.Error{
		Code: abi.Denied, Permanent: true, Field: "repo_url",
		Message: fmt.Sprintf("repository %s: %s leads to %q, which is outside of it", o.repo, path, target),
		Hint:    hint + "if commands of checks may read that folder: add it to verify.read",
	}
}

// gitDir returns the git directory of a folder.
func (o *outside) gitDir(top string) (string, error) {
	at := filepath.Join(top, ".git")
	info, err := os.Lstat(at)
	switch {
	case err != nil:
		return top, nil //nolint:nilerr // a bare repository, or none: git says so
	case info.IsDir():
		return at, nil
	case info.Mode()&fs.ModeSymlink != 0:
		real, err := filepath.EvalSymlinks(at)
		if err != nil || o.has(real) {
			return real, nil //nolint:nilerr // git says that it is not there
		}
		return "", o.refuse(at, real, "")
	}
	target, ok := follow(at, "gitdir: ", top)
	if !ok || o.has(target) || sameFile(filepath.Join(target, "gitdir"), at) || isSubmodule(target, top) {
		return target, nil
	}
	return "", o.refuse(at, target, "")
}

// follow returns the folder that the first line of a file names, relative to dir.
func follow(file, prefix, dir string) (string, bool) {
	text, err := regularfile.Read(file, 4<<10)
	line, _, _ := strings.Cut(string(text), "\n")
	path, ok := strings.CutPrefix(line, prefix)
	if err != nil || !ok || path == "" {
		return "", false
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	real, err := filepath.EvalSymlinks(path)
	return real, err == nil
}

// sameFile reports whether a file of a worktree's git directory names the file .git that leads there.
func sameFile(file, at string) bool {
	back, ok := follow(file, "", filepath.Dir(file))
	return ok && back == at
}

// isSubmodule reports whether the settings of a git directory name a folder as its work tree.
func isSubmodule(git, top string) bool {
	text, err := regularfile.Read(filepath.Join(git, "config"), 1<<20)
	if err != nil {
		return false
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), "=")
		if path := strings.TrimSpace(value); strings.EqualFold(strings.TrimSpace(key), "worktree") && path != "" {
			if !filepath.IsAbs(path) {
				path = filepath.Join(git, path)
			}
			real, err := filepath.EvalSymlinks(path)
			return err == nil && real == top
		}
	}
	return false
}

// commonDir returns the folder of objects and references of a git directory.
func (o *outside) commonDir(git string) (string, error) {
	file := filepath.Join(git, "commondir")
	if _, err := os.Lstat(file); err != nil {
		return git, nil //nolint:nilerr // it has them itself
	}
	common, ok := follow(file, "", git)
	if !ok {
		return git, nil // git says that it is not there
	}
	if filepath.Dir(git) == filepath.Join(common, "worktrees") || o.has(common) {
		return common, nil
	}
	return "", o.refuse(file, common, "")
}

// links refuses symbolic links at a path and below it that lead out of the repository.
func (o *outside) links(path string) error {
	return filepath.WalkDir(path, func(at string, e fs.DirEntry, err error) error {
		if err != nil || e.Type()&fs.ModeSymlink == 0 {
			return nil //nolint:nilerr // what cannot be listed, git cannot read
		}
		if real, err := filepath.EvalSymlinks(at); err == nil && !o.has(real) {
			return o.refuse(at, real, "")
		}
		return nil
	})
}

// alternates refuses folders of objects outside of the repository that one of its own borrows from.
func (o *outside) alternates(objects string, levels int) error {
	file := filepath.Join(objects, "info", "alternates")
	text, err := regularfile.Read(file, 1<<20)
	if err != nil || levels == 0 {
		if _, missing := os.Lstat(file); missing != nil || levels == 0 {
			return nil //nolint:nilerr // there are none, or git does not read them
		}
		return err
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		path := line
		if !filepath.IsAbs(path) {
			path = filepath.Join(objects, path)
		}
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			real = line // git may read it in another way
		}
		if err != nil && line[0] != '"' {
			continue // it is not there
		}
		if !o.has(real) {
			return o.refuse(file, real, "to copy what it borrows: git -C "+gitexec.Quote(o.repo)+" repack -a -d, then remove that file; ")
		}
		if err := o.alternates(real, levels-1); err != nil {
			return err
		}
	}
	return nil
}
