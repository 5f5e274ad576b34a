package gitsource

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Unseen finds the files of a repository that models do not see.
type Unseen struct {
	Name      func(name string) bool              // by the name alone
	Content   func(name string, data []byte) bool // by the name and what is in the file
	Git       func(ctx context.Context, args ...string) (gitexec.Answer, error)
	Operation string // of errors
}

// Sides of a change in which [Unseen.Of] looks for keys, as arguments of git grep. A commit is one too, by its name.
const (
	InIndex     = "--cached"
	InWorkTree  = ""
	InUntracked = "--untracked" // the work tree with the files that git does not know
)

// keyEnd is the end of the line with which a private key begins or ends, in all forms that the rules for files may take for one.
const keyEnd = `PRIVATE KEY( BLOCK)?-----(` + "\r" + `?$|\\n)`

// MostPaths is how many files are named to git grep at most, for systems that bound the length of a command line.
const MostPaths = 200

// Of returns those of names that models do not see: by the name, or because the file has a private key
// in one of the sides. Names are relative to the top of the work tree.
func (u Unseen) Of(ctx context.Context, names []string, sides ...string) (list []string, err error) {
	left := map[string]bool{}
	for _, name := range names {
		if u.Name(name) {
			list = append(list, name)
		} else {
			left[name] = true
		}
	}
	for _, side := range sides {
		if len(left) == 0 {
			break
		}
		found, err := u.withKeys(ctx, side, left)
		if err != nil {
			return nil, err
		}
		for _, name := range found {
			if left[name] {
				list = append(list, name)
				delete(left, name)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// withKeys returns the files with a private key in them in one side, at least those of names.
func (u Unseen) withKeys(ctx context.Context, side string, names map[string]bool) (list []string, err error) {
	args := []string{"grep", "-E", "-a", "-o", "-z", "--full-name", "--no-color", "--no-line-number", "--no-column", "--no-recurse-submodules", "-e", keyEnd}
	prefix := ""
	switch side {
	case InWorkTree:
	case InIndex, InUntracked:
		args = append(args, side)
	default:
		args, prefix = append(args, side), side+":"
	}
	args = append(args, "--")
	if len(names) > MostPaths {
		args = append(args, ":(top)")
	} else {
		args = append(args, Literal(slices.Sorted(maps.Keys(names)))...)
	}
	a, err := u.Git(ctx, args...)
	switch {
	case err != nil:
		return nil, err
	case a.Code > 1:
		return nil, gitexec.Fatal(u.Operation, a)
	case a.Cut:
		return nil, &abi.Error{Code: abi.Denied, Permanent: true,
			Message: "git: too many files with keys to see which of them models may read", Hint: "name paths, or let a person do it"}
	}
	name, rest, more := strings.Cut(a.Out, "\x00")
	for more { // a name may have line ends
		var line string
		line, rest, _ = strings.Cut(rest, "\n")
		if name = strings.TrimPrefix(name, prefix); u.Content(name, []byte(line+"\n")) {
			list = append(list, name)
		}
		name, rest, more = strings.Cut(rest, "\x00")
	}
	return list, nil
}

// Literal returns names, relative to the top of the work tree, as paths of git.
func Literal(names []string) (paths []string) {
	for _, name := range names {
		paths = append(paths, ":(top,literal)"+name)
	}
	return paths
}
