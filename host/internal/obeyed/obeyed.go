// Package obeyed keeps confined commands from making or changing what programs of the user obey in a
// workspace: repositories, whose settings name programs that git executes for everyone who calls it
// there, and the folders in which a server of this program finds definitions.
package obeyed

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/sentinel-runtime/sentinel/internal/textcut"
)

// gitName is the name by which git finds a repository in a folder and those below it.
const gitName = ".git"

// refusedSuffix is added to the names of what a confined command has left.
const refusedSuffix = ".refused-"

// A Set has the files, folders and links in a workspace that programs obey. A confined command cannot
// write those that exist, and those that it makes are renamed when it has ended. A Set is used by one
// goroutine at a time.
type Set struct {
	root  string   // without links
	names []string // besides gitName
	hide  []string // paths that the command cannot reach
	known []entry
	left  *Left
}

// named reports whether programs obey a file of this name. Some file systems do not distinguish case.
func (all *Set) named(name string) bool { return obeys(name, all.names) }

func obeys(name string, names []string) bool {
	return strings.EqualFold(name, gitName) || slices.ContainsFunc(names, func(o string) bool { return strings.EqualFold(name, o) })
}

// Holds reports whether a path, with slashes, is that of what programs obey, or in it. names are as in [Find].
func Holds(path string, names []string) bool {
	return slices.ContainsFunc(strings.Split(path, "/"), func(part string) bool { return obeys(part, names) })
}

// An entry is a file, folder or link that programs obey.
type entry struct {
	path string
	id   fileID
	kind fs.FileMode
	link string // its text, if it is one

	leads []lead // of a known one
}

func (o *entry) isLink() bool { return o.kind&fs.ModeSymlink != 0 }

func (o *entry) isGit() bool { return strings.EqualFold(filepath.Base(o.path), gitName) }

// same reports whether it is the same one at the same place: links and files name relative paths.
func (o *entry) same(other *entry) bool {
	return o.path == other.path && o.id.same(other.id) && o.link == other.link && o.kind == other.kind
}

// Left is what confined commands have made and could not be renamed. A later command must not take it
// for what was there before. The zero value is empty, and several goroutines may use it.
type Left struct {
	mu   sync.Mutex
	list []entry
}

func (l *Left) has(one *entry) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.list, func(o entry) bool { return o.same(one) })
}

func (l *Left) add(one *entry) {
	if !l.has(one) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.list = append(l.list, *one)
	}
}

// Find finds those that exist before a command begins, in a workspace without links. names are what
// programs other than git obey, hide what the command cannot reach. The command writes root, which is
// around or below it: what repositories beside and above root lead to in it counts, too.
func Find(ctx context.Context, around, root string, names, hide []string, left *Left) (*Set, error) {
	all := &Set{root: around, names: names, hide: hide, left: left}
	var failed named
	err := all.walk(ctx, func(_ holder, one *entry) (enter string) {
		if left.has(one) {
			return ""
		}
		one.leads = []lead{leadOf(one.path)}
		if one.isGit() {
			var err error
			if one.leads, err = gitLeads(one.path); err != nil {
				failed.add(fmt.Sprintf("%s: %v", all.relative(one.path), err))
			}
		}
		all.known = append(all.known, *one)
		return ""
	})
	if err == nil && len(failed.first) > 0 {
		err = fmt.Errorf("find what repositories lead to: %s", &failed)
	}
	all.root = root
	for i := range all.known {
		one := &all.known[i]
		if err == nil && !all.below(one.path) && slices.ContainsFunc(one.leads, func(l lead) bool {
			return l.real != around && l.holds(root) || l.real == "" && all.below(l.place()) && !all.protects(one, l.place())
		}) {
			err = fmt.Errorf("%q leads programs to %q, to a folder that it is in, or to a missing file in it: use another workspace", one.path, root)
		}
	}
	return all, err
}

// below reports whether a path is below the root.
func (all *Set) below(path string) bool {
	return strings.HasPrefix(path, strings.TrimSuffix(all.root, string(filepath.Separator))+string(filepath.Separator))
}

// protects reports whether a path is in what is protected because of an entry.
func (all *Set) protects(one *entry, path string) bool {
	return slices.ContainsFunc(one.leads, func(l lead) bool {
		return all.below(l.real) && strings.HasPrefix(path, l.real+string(filepath.Separator))
	})
}

// Knows reports whether the repository of a folder below the root was there before the command began. It
// is true for other folders, whose repositories the command cannot write.
func (all *Set) Knows(folder string) bool {
	if folder != all.root && !all.below(folder) {
		return true
	}
	return slices.ContainsFunc(all.known, func(k entry) bool { return k.isGit() && filepath.Dir(k.path) == folder })
}

// Steering returns the files and folders below the root that steer git and other servers in the
// repositories, and those that commands do not see: the state of other servers, with their tokens.
func (all *Set) Steering() (protect, hide []string) {
	for i := range all.known {
		one := &all.known[i]
		if one.isGit() && one.isLink() && filepath.Dir(one.path) == all.root {
			protect = append(protect, one.path) // the link of the workspace itself, which is refused
			continue
		}
		for _, l := range one.leads {
			if all.below(l.real) {
				protect = append(protect, l.real)
			}
		}
		if state := leadOf(filepath.Join(one.path, "state")); all.below(state.real) && !one.isGit() {
			hide = append(hide, state.real)
		}
	}
	return outermost(protect), hide
}

// outermost returns paths without those that are in others.
func outermost(paths []string) (list []string) {
	slices.SortFunc(paths, func(a, b string) int { // a folder is followed by what is in it
		return slices.Compare(strings.Split(a, string(filepath.Separator)), strings.Split(b, string(filepath.Separator)))
	})
	for _, path := range paths {
		if n := len(list); n == 0 || path != list[n-1] && !strings.HasPrefix(path, list[n-1]+string(filepath.Separator)) {
			list = append(list, path)
		}
	}
	return list
}

// Bounds of a message about repositories.
const (
	maxNamed = 10  // of them; the others are counted
	maxShown = 200 // bytes of a path
)

// named are the first names for a message, and the number of the others.
type named struct {
	first []string
	more  int
}

func (n *named) add(text string) {
	if len(n.first) < maxNamed {
		n.first = append(n.first, text)
	} else {
		n.more++
	}
}

func (n *named) String() string {
	text := strings.Join(n.first, ", ")
	if n.more > 0 {
		text += fmt.Sprintf(" and %d more", n.more)
	}
	return text
}

// relative is a path below the root for a message.
func (all *Set) relative(path string) string {
	return fmt.Sprintf("%q", textcut.Mark(strings.TrimPrefix(path, all.root+string(filepath.Separator)), maxShown))
}

// RefuseNew renames the repositories that were not there before, or led elsewhere, so that no program
// takes them for some, and those in them. The error names them, and those that could not be renamed. The
// context must not be that of the caller of the command, which could end it so: what it has not renamed
// by then is known to the next command.
func (all *Set) RefuseNew(ctx context.Context) error {
	var renamed, stay named
	err := all.walk(ctx, func(dir holder, one *entry) (enter string) {
		if slices.ContainsFunc(all.known, func(k entry) bool { return k.same(one) && !slices.ContainsFunc(k.leads, lead.changed) }) {
			return ""
		}
		base := filepath.Base(one.path)
		for n := 1; ; n++ {
			to := fmt.Sprintf("%s%s%d", base, refusedSuffix, n)
			if dir.exists(to) {
				continue
			}
			if err := dir.rename(base, to); errors.Is(err, fs.ErrNotExist) { // another program has removed it
				return ""
			} else if err != nil {
				all.left.add(one)
				stay.add(fmt.Sprintf("%s: %v", all.relative(one.path), err))
				return base
			}
			renamed.add(all.relative(one.path))
			return to
		}
	})
	const why = "a confined command cannot make repositories or folders of this program in the workspace, nor have them lead elsewhere, since they name programs to execute: "
	var errs []error
	if len(renamed.first) > 0 {
		errs = append(errs, fmt.Errorf(why+"%s renamed to names with %s1 and so on; commit by code/git, or rename what you trust", &renamed, refusedSuffix))
	}
	if len(stay.first) > 0 {
		errs = append(errs, fmt.Errorf(why+"NOT renamed, remove before git or sentinel is executed there: %s", &stay))
	}
	return errors.Join(append(errs, err)...)
}

// A holder is a folder in which something that programs obey is.
type holder interface {
	exists(name string) bool
	// rename renames a file in the folder, also where the mode of the folder forbids it.
	rename(from, to string) error
}

// hidden reports whether a command cannot reach a path.
func (all *Set) hidden(path string) bool { return slices.Contains(all.hide, path) }
