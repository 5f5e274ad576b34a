package host

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/sentinel-runtime/sentinel/host/foldersync"
	"github.com/sentinel-runtime/sentinel/internal/textcut"
)

// gitName is the name by which git finds a repository in a folder and those below it.
const gitName = ".git"

// obeyedNames are the names by which programs of the user find in a folder what to execute: git,
// and this program, of which another server may be started in any folder of the workspace.
var obeyedNames = func() []string {
	list := []string{gitName, DirName}
	for _, path := range foldersync.Folders("", string(filepath.Separator)) {
		list = append(list, filepath.Base(path))
	}
	return list
}()

// isObeyed reports whether a file has one of obeyedNames. Some file systems do not distinguish case.
func isObeyed(name string) bool {
	return slices.ContainsFunc(obeyedNames, func(o string) bool { return strings.EqualFold(name, o) })
}

// refusedSuffix is added to the names of what a confined command has left.
const refusedSuffix = ".refused-"

// repositories are the files, folders and links with obeyedNames in a workspace. Git executes
// programs that their settings name, and this program their definitions, for everyone who calls
// it there. So a confined command cannot write those that exist, and those that it makes are
// renamed when it has ended.
type repositories struct {
	root  string   // without links
	hide  []string // paths that the command cannot reach
	known []obeyed
	left  *leftOver
}

// An obeyed is a file, folder or link with one of obeyedNames.
type obeyed struct {
	path string
	id   fileID
	kind fs.FileMode
	link string // what a link leads to
}

func (o *obeyed) isLink() bool { return o.kind&fs.ModeSymlink != 0 }

func (o *obeyed) same(other *obeyed) bool {
	return o.id.same(other.id) && o.link == other.link && o.kind == other.kind
}

// leftOver is what confined commands have made and could not be renamed. A later command must not
// take it for what was there before.
type leftOver struct {
	mu   sync.Mutex
	list []obeyed
}

func (l *leftOver) has(one *obeyed) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.list, func(o obeyed) bool { return o.path == one.path && o.same(one) })
}

func (l *leftOver) add(one *obeyed) {
	if !l.has(one) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.list = append(l.list, *one)
	}
}

// findRepositories finds those that exist before a command begins.
func findRepositories(root string, hide []string, left *leftOver) (*repositories, error) {
	all := &repositories{root: root, hide: hide, left: left}
	return all, all.walk(func(_ holder, one *obeyed) {
		if !left.has(one) {
			all.known = append(all.known, *one)
		}
	})
}

// steering returns the files and folders below the root that steer git and other servers in the
// repositories, and those that commands do not see: the state of other servers, with their tokens.
func (all *repositories) steering() (protect, hide []string) {
	// inside returns where a path leads, if that is below the root.
	inside := func(path string) (string, bool) {
		real, err := filepath.EvalSymlinks(path)
		return real, err == nil && strings.HasPrefix(real, all.root+string(filepath.Separator))
	}
	for i := range all.known {
		one := &all.known[i]
		isGit := strings.EqualFold(filepath.Base(one.path), gitName)
		if isGit && (!one.isLink() || filepath.Dir(one.path) == all.root) {
			protect = append(protect, gitFolders(filepath.Dir(one.path))...)
			continue
		}
		real, below := inside(one.path)
		if below {
			protect = append(protect, real)
		}
		if state, below := inside(filepath.Join(one.path, "state")); below && !isGit {
			hide = append(hide, state)
		}
	}
	return protect, hide
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
func (all *repositories) relative(path string) string {
	return fmt.Sprintf("%q", textcut.Mark(strings.TrimPrefix(path, all.root+string(filepath.Separator)), maxShown))
}

// refuseNew renames the repositories that were not there before, so that no program takes them for
// some. The error names them, and those that could not be renamed.
func (all *repositories) refuseNew() error {
	var renamed, stay named
	err := all.walk(func(dir holder, one *obeyed) {
		if slices.ContainsFunc(all.known, func(k obeyed) bool { return k.same(one) }) {
			return
		}
		base := filepath.Base(one.path)
		for n := 1; ; n++ {
			to := fmt.Sprintf("%s%s%d", base, refusedSuffix, n)
			if dir.exists(to) {
				continue
			}
			if err := dir.rename(base, to); errors.Is(err, fs.ErrNotExist) { // another program has removed it
				return
			} else if err != nil {
				all.left.add(one)
				stay.add(fmt.Sprintf("%s: %v", all.relative(one.path), err))
				return
			}
			renamed.add(all.relative(one.path))
			return
		}
	})
	const why = "a confined command cannot make repositories or folders of this program in the workspace, which name programs to execute: "
	var errs []error
	if len(renamed.first) > 0 {
		errs = append(errs, fmt.Errorf(why+"%s renamed to names with %s1 and so on; commit by code/git, or rename what you trust", &renamed, refusedSuffix))
	}
	if len(stay.first) > 0 {
		errs = append(errs, fmt.Errorf(why+"NOT renamed, remove before git or sentinel is executed there: %s", &stay))
	}
	return errors.Join(append(errs, err)...)
}

// A holder is a folder in which something with one of obeyedNames is.
type holder interface {
	exists(name string) bool
	// rename renames a file in the folder, also where the mode of the folder forbids it.
	rename(from, to string) error
}

// hidden reports whether a command cannot reach a path.
func (all *repositories) hidden(path string) bool { return slices.Contains(all.hide, path) }
