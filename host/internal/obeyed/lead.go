package obeyed

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/sentinel-runtime/sentinel/internal/regularfile"
)

// A lead is a path by which programs find what they obey. It may be a link, or lead through some.
type lead struct {
	at   string
	real string // where it leads, "" for nowhere
	git  bool   // to a git directory
}

func leadOf(at string) lead {
	real, err := filepath.EvalSymlinks(at)
	if err != nil {
		real = ""
	}
	return lead{at: at, real: real}
}

// changed reports whether the path leads elsewhere now.
func (l lead) changed() bool { return leadOf(l.at).real != l.real }

// place returns where the path leads, or would lead if that existed.
func (l lead) place() string {
	if l.real != "" {
		return l.real
	}
	at := l.at
	for range 40 { // as many links as Linux follows
		// The folder that exists, and what is missing in it.
		rest := ""
		dir := at
		for {
			real, err := filepath.EvalSymlinks(dir)
			if err == nil {
				at = filepath.Join(real, rest)
				break
			}
			if target, err := os.Readlink(dir); err == nil {
				if !filepath.IsAbs(target) {
					target = filepath.Join(filepath.Dir(dir), target)
				}
				at = filepath.Join(target, rest)
				break
			}
			if dir == filepath.Dir(dir) {
				return at
			}
			rest, dir = filepath.Join(filepath.Base(dir), rest), filepath.Dir(dir)
		}
		if real, err := filepath.EvalSymlinks(dir); err == nil && filepath.Join(real, rest) == at {
			return at
		}
	}
	return at
}

// ownFolders are those of a git directory. Others in one are work trees.
var ownFolders = []string{"branches", "hooks", "info", "lfs", "logs", "modules", "objects", "refs", "rr-cache", "worktrees"}

// holds reports whether a folder is what the path leads to, or belongs to it.
func (l lead) holds(folder string) bool {
	rel, err := filepath.Rel(l.real, folder)
	if l.real == "" || err != nil || !filepath.IsLocal(rel) {
		return false
	}
	first, _, _ := strings.Cut(rel, string(filepath.Separator))
	return !l.git || rel == "." || slices.Contains(ownFolders, strings.ToLower(first))
}

// maxGitFile bounds a file with a path. Git reads no longer file .git.
const maxGitFile = 1 << 20

// gitParts are the files and folders of a git directory that name programs, or where they are named.
var gitParts = []string{"commondir", "config", "config.worktree", "hooks", "info"}

// gitLeads returns what the .git at a path leads git to: itself or the git directory that it names, the
// directory that this one shares with other work trees, and what links in them, their hooks and info lead to.
// Settings that name programs are not read.
func gitLeads(path string) ([]lead, error) {
	list := []lead{leadOf(path)}
	// follow adds what a file names, and returns where that leads.
	follow := func(file, prefix, dir string) (string, error) {
		text, err := regularfile.Read(file, maxGitFile)
		if errors.Is(err, regularfile.ErrSize) {
			return "", err
		}
		named, ok := strings.CutPrefix(strings.TrimRight(string(text), "\r\n"), prefix)
		named, _, _ = strings.Cut(named, "\x00") // where it ends for git
		if err != nil || !ok || named == "" {
			return "", nil //nolint:nilerr // git cannot read it either
		}
		if !filepath.IsAbs(named) {
			named = dir + string(filepath.Separator) + named // "x/.." is not "." if x is a link
		}
		to := leadOf(named)
		to.git = true
		list = append(list, to)
		return to.real, nil
	}
	git, err := follow(path, "gitdir: ", filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	if git == "" {
		git = list[0].real
	}
	if git == "" {
		return list, nil
	}
	common, err := follow(filepath.Join(git, "commondir"), "", git)
	if err != nil {
		return nil, err
	}
	for _, dir := range []string{git, common} {
		if dir == "" {
			continue
		}
		for _, part := range gitParts {
			list = append(list, leadOf(filepath.Join(dir, part)))
		}
		for _, folder := range []string{dir, filepath.Join(dir, "hooks"), filepath.Join(dir, "info")} {
			links, err := linksIn(folder)
			if err != nil {
				return nil, err
			}
			list = append(list, links...)
		}
	}
	return list, nil
}

// linksIn returns what the links in a folder lead to. A folder that cannot be listed is an error if a
// program can open files in it by name.
func linksIn(folder string) (list []lead, err error) {
	entries, err := os.ReadDir(folder)
	switch {
	case err == nil:
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return nil, nil
	default:
		if _, searched := os.Stat(folder + string(filepath.Separator) + "."); errors.Is(searched, fs.ErrPermission) {
			return nil, nil
		}
		return nil, fmt.Errorf("links in it: %w", err)
	}
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink != 0 {
			list = append(list, leadOf(filepath.Join(folder, e.Name())))
		}
	}
	return list, nil
}
