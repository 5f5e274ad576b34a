package filewalk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/internal/rootfs"
	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels/glob"
)

// Options select what a walk visits. The zero value visits all files of the root
// that are not ignored.
type Options struct {
	// Start is the folder to walk, relative to the root. It is walked even if it is
	// ignored. Default: the root.
	Start string
	// All visits ignored files and the folders of [glob.Skipped] as well.
	All bool
	// Skip reports whether to leave out a file or a folder with all that is in it.
	// Default: nothing is left out.
	Skip func(name string, folder bool) bool
	// ByLevel visits all entries of a level before those below them, so that a
	// limit cuts off what is deepest. Default: the order of the paths, a folder
	// before its entries.
	ByLevel bool
	// MaxEntries limits the entries that are visited. Default: no limit.
	MaxEntries int
	// MaxDepth limits the levels of entries. Default: none but [maxDepth].
	MaxDepth int
}

// maxDepth limits the levels of entries of any walk: so many folders are open at once, and with ByLevel each is
// opened from the root, so that the time grows with the square of the depth.
const maxDepth = 250

// A Func is called for each entry, with its path relative to the root. Its error
// ends the walk and is returned, with the exceptions of [fs.SkipAll], which ends
// the walk, and for folders [fs.SkipDir], which does not enter the folder.
type Func func(name string, entry fs.DirEntry) error

// Walk visits the entries below a folder. Links are visited but not followed, also if a program puts one in the
// place of a folder during the walk. A folder that cannot be listed, other than the first one, counts as empty. Folders
// more than 250 in each other are the error limit, unless MaxDepth ends before.
// complete reports that no limit ended the walk early. Walk returns the context's
// error once ctx has ended.
func Walk(ctx context.Context, root *os.Root, opt Options, fn Func) (complete bool, err error) {
	w := &walk{Options: opt, ctx: ctx, root: root, fn: fn, complete: true}
	w.Start = cmp.Or(w.Start, ".")
	open, err := rootfs.Enter(root, w.Start)
	if err != nil {
		return false, err
	}
	err = w.list(folder{open: open, path: w.Start, depth: 1, scope: w.above(w.Start)})
	for err == nil && len(w.queue) > 0 {
		next := w.queue[0]
		w.queue = w.queue[1:]
		if next.open, err = rootfs.Enter(root, next.path); err != nil {
			err = nil // it cannot be opened, or was replaced
			continue
		}
		err = w.list(next)
	}
	if errors.Is(err, fs.SkipAll) {
		err = nil
	}
	return w.complete, err
}

type walk struct {
	Options
	ctx      context.Context
	root     *os.Root
	fn       Func
	visited  int
	complete bool
	queue    []folder // ByLevel: folders that are not listed yet
}

// A folder is listed after the entry has been visited. It is opened in the open folder around it, because a path
// could lead elsewhere by then: to files of the host, if a program puts a link in the place of the folder.
type folder struct {
	open  *os.Root // nil in the queue
	path  string
	depth int // of its entries
	scope *scope
}

// list visits the entries of an open folder and closes it.
func (w *walk) list(dir folder) error {
	defer dir.open.Close()
	if err := w.ctx.Err(); err != nil {
		return err
	}
	entries, err := fs.ReadDir(dir.open.FS(), ".")
	if err != nil && dir.path == w.Start {
		return err
	}
	if !w.All && slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == ignoreFile }) {
		dir.scope = scopeOf(dir.open, dir.path, dir.scope)
	}
	for _, entry := range entries {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		if err := w.visit(dir, entry); err != nil {
			return err
		}
	}
	return nil
}

// visit visits an entry of a folder, and lists it if it is a folder.
func (w *walk) visit(dir folder, entry fs.DirEntry) error {
	name, isFolder := join(dir.path, entry.Name()), entry.IsDir()
	if !w.All && (isFolder && glob.IsSkipped(entry.Name()) || dir.scope.ignores(name, entry.Name(), isFolder)) {
		return nil
	}
	if w.Skip != nil && w.Skip(name, isFolder) {
		return nil
	}
	if w.MaxEntries > 0 && w.visited == w.MaxEntries {
		w.complete = false
		return fs.SkipAll
	}
	w.visited++
	err := w.fn(name, entry)
	switch {
	case !isFolder || err != nil:
		if errors.Is(err, fs.SkipDir) {
			return nil
		}
		return err
	case w.MaxDepth > 0 && dir.depth == w.MaxDepth:
		w.complete = false
		return nil
	case dir.depth == maxDepth:
		return &abi.Error{Code: abi.Limit, Permanent: true, Message: fmt.Sprintf("list folder %q: it has more than %d folders in each other", textcut.Mark(name, 200), maxDepth),
			Hint: "remove the folder, or leave it out by a line in .gitignore"}
	}
	below := folder{path: name, depth: dir.depth + 1, scope: dir.scope}
	if w.ByLevel {
		w.queue = append(w.queue, below)
		return nil
	}
	if below.open, err = rootfs.EnterFolder(dir.open, entry.Name()); err != nil {
		return nil // it cannot be opened, or was replaced
	}
	return w.list(below)
}

// join is path.Join of clean paths.
func join(dir, name string) string {
	if dir == "." {
		return name
	}
	return dir + "/" + name
}

const ignoreFile = ".gitignore"

// above returns the rules of the folders above a folder.
func (w *walk) above(dir string) *scope {
	if w.All || dir == "." {
		return nil
	}
	above := path.Dir(dir)
	open, err := rootfs.Enter(w.root, above)
	if err != nil {
		return w.above(above)
	}
	defer open.Close()
	return scopeOf(open, above, w.above(above))
}

// scopeOf adds the rules of one open folder, if it has any. What is not a regular file or cannot be read is no
// .gitignore file.
func scopeOf(open *os.Root, dir string, outer *scope) *scope {
	info, err := open.Lstat(ignoreFile)
	if err != nil {
		return outer
	}
	data, err := ReadFile(open, ignoreFile, info, maxIgnoreFile)
	if err != nil {
		return outer
	}
	s := &scope{dir: dir, outer: outer}
	if outer != nil {
		s.count = outer.count
	}
	s.rules = parseIgnore(string(data), maxRules-s.count)
	s.count += len(s.rules)
	return s
}

// Compare orders paths as a walk visits them: the entries of a folder follow it.
func Compare(a, b string) int {
	for i := range min(len(a), len(b)) {
		switch {
		case a[i] == b[i]:
		case a[i] == '/':
			return -1
		case b[i] == '/':
			return 1
		default:
			return cmp.Compare(a[i], b[i])
		}
	}
	return cmp.Compare(len(a), len(b))
}

// Depth is the number of components of a path.
func Depth(name string) int {
	if name == "." {
		return 0
	}
	return strings.Count(name, "/") + 1
}
