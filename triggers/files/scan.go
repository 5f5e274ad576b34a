package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// maxWatched limits the watched folders, each of which takes 0.5 KiB here and
// 1 KiB in the kernel. A larger tree is polled.
const maxWatched = 65_536

// A scan walks the folders that the patterns reach, watches each, and marks files
// that differ from the index as dirty.
type scan struct {
	w          *Watcher
	t          *tree           // nil if the root is missing
	old        []*group        // get a change for a new file
	new        []*group        // get a new file as part of their baseline
	seen       map[string]bool // files and folders by path; the others were deleted
	unreadable []string        // folders that could not be listed: files below them stay
}

// scanAll scans everything. Files that only groups in fresh match become their
// baseline.
func (w *Watcher) scanAll(fresh []*group) {
	start := time.Now()
	w.mu.Lock()
	w.lost = false
	old := make([]*group, 0, len(w.groups))
	for _, g := range w.groups {
		old = append(old, g)
	}
	w.mu.Unlock()
	// The scan tries to watch all folders again: watches may have become available.
	w.polling = w.src == nil
	w.watchAncestor()
	w.scan(".", old, fresh)
	if !w.polling {
		w.pollingNoted = false // log the next time
	}
	w.scanned = time.Now()
	w.cost = w.scanned.Sub(start)
}

// scanTree scans a folder and all below it.
func (w *Watcher) scanTree(rel string) {
	w.mu.Lock()
	old := make([]*group, 0, len(w.groups))
	for _, g := range w.groups {
		old = append(old, g)
	}
	w.mu.Unlock()
	w.scan(rel, old, nil)
}

// scan opens the tree for one walk. If the root is missing, all files are
// deleted. If it cannot be opened for another reason, all files stay.
func (w *Watcher) scan(rel string, old, fresh []*group) {
	s := &scan{w: w, old: old, new: fresh, seen: map[string]bool{}}
	t, err := openTree(w.opt.Root, w.opt.Confined)
	switch {
	case err == nil:
		s.t = t
		s.folder(rel, strings.Count(rel, "/"))
		t.close()
	case !missing(err):
		w.opt.Logger.Warn("folder cannot be read; keeping the last known state", "folder", w.opt.Root, "error", err)
		return
	}
	s.removeUnseen(rel)
}

// removeUnseen marks the files below rel that were not seen as dirty, and ends the
// watches of folders that were deleted.
func (s *scan) removeUnseen(rel string) {
	unseen := func(p string) bool {
		if rel != "." && p != rel && !strings.HasPrefix(p, rel+"/") {
			return false
		}
		for _, k := range s.unreadable {
			if k == "." || strings.HasPrefix(p, k+"/") {
				return false
			}
		}
		return !s.seen[p]
	}
	for p := range s.w.index { // only this goroutine writes it
		if unseen(p) {
			s.w.markDirty(p, false)
		}
	}
	for dir := range s.w.watched {
		if unseen(dir) {
			delete(s.w.watched, dir)
			if s.w.src != nil {
				s.w.src.Unwatch(filepath.Join(s.w.opt.Root, filepath.FromSlash(dir)))
			}
		}
	}
}

// enters reports whether a folder can contain matching files.
func (s *scan) enters(dir string) bool {
	if isSkipped(dir) {
		return false
	}
	enters := func(g *group) bool { return g.enters(dir) }
	return slices.ContainsFunc(s.old, enters) || slices.ContainsFunc(s.new, enters)
}

// folder scans one folder. It is watched before it is listed, so that changes in
// between cause hints.
func (s *scan) folder(rel string, depth int) {
	if depth > maxDepth {
		return
	}
	info, err := s.t.stat(rel)
	if err != nil || !info.IsDir() {
		if err != nil && !missing(err) {
			s.unreadable = append(s.unreadable, rel)
		}
		return
	}
	s.seen[rel] = true
	s.watch(rel, info)
	list, err := s.t.list(rel)
	if err != nil {
		// A folder that cannot be listed has not lost its files.
		s.unreadable = append(s.unreadable, rel)
		return
	}
	for _, e := range list {
		child := path.Join(rel, e.Name())
		if isTemporary(e.Name()) {
			continue
		}
		switch {
		case e.IsDir(): // of the entry itself, not of a link's target
			if s.enters(child) {
				s.folder(child, depth+1)
			}
		case e.Type()&fs.ModeSymlink != 0:
			s.link(child, depth)
		case e.Type().IsRegular():
			s.file(child)
		}
	}
}

// link scans a link as the file it leads to, or as a folder if a pattern names it.
func (s *scan) link(rel string, depth int) {
	info, err := s.t.stat(rel)
	switch {
	case err != nil:
	case info.IsDir():
		follows := func(g *group) bool { return g.follows(rel) }
		if s.enters(rel) && (slices.ContainsFunc(s.old, follows) || slices.ContainsFunc(s.new, follows)) {
			s.folder(rel, depth+1)
		}
	case info.Mode().IsRegular():
		s.file(rel)
	}
}

// file compares a file with the index.
func (s *scan) file(rel string) {
	// Existing subscriptions get a change after the debounce, because the file may
	// be half-written now.
	matches := func(g *group) bool { return g.matches(rel) }
	known := s.w.index[rel]
	if slices.ContainsFunc(s.old, matches) {
		s.seen[rel] = true
		info, err := s.t.stat(rel)
		if err == nil && (known == nil || known.racy || known.stamp != stampOf(info)) {
			s.w.markDirty(rel, false)
		}
		return
	}
	// For new subscriptions it is part of the baseline.
	var fresh []*group
	for _, g := range s.new {
		if g.matches(rel) {
			fresh = append(fresh, g)
		}
	}
	if len(fresh) == 0 {
		return
	}
	s.seen[rel] = true
	for i := 0; i < len(fresh); i++ {
		if fresh[i].count++; fresh[i].count > s.w.opt.MaxFiles {
			fresh[i].tooMany = true // it matches nothing from now on
		}
	}
	if known == nil && slices.ContainsFunc(fresh, matches) {
		e, quiet := s.w.readEntry(s.t, rel)
		if e != nil {
			s.w.mu.Lock()
			s.w.index[rel] = e
			s.w.mu.Unlock()
		}
		if e == nil || e.racy || !quiet {
			s.w.markDirty(rel, false)
		}
	}
}

// watch watches a folder. It is repeated at each scan, which costs a microsecond
// and restores the watch of a folder that was replaced.
func (s *scan) watch(rel string, info fs.FileInfo) {
	w := s.w
	if w.src == nil {
		return
	}
	native := filepath.Join(w.opt.Root, filepath.FromSlash(rel))
	before, again := w.watched[rel]
	if again && !os.SameFile(before, info) {
		w.src.Unwatch(native) // the folder that had this name before
	}
	if !again && len(w.watched) >= maxWatched {
		w.startPolling(fmt.Errorf("more than %d folders", maxWatched))
		return
	}
	switch err := w.src.Watch(native); {
	case err == nil:
		w.watched[rel] = info
	case errors.Is(err, fs.ErrNotExist):
		delete(w.watched, rel)
	default:
		delete(w.watched, rel)
		w.startPolling(err)
	}
}

// watchAncestor watches the nearest existing folder above the root, because the
// root may be created, deleted or replaced.
func (w *Watcher) watchAncestor() {
	if w.src == nil {
		return
	}
	for above := filepath.Dir(w.opt.Root); above != w.opt.Root; above = filepath.Dir(above) {
		if info, err := os.Stat(above); err != nil || !info.IsDir() {
			if above == filepath.Dir(above) {
				return
			}
			continue
		}
		if w.ancestor != above && w.ancestor != "" {
			w.src.Unwatch(w.ancestor)
		}
		w.ancestor = above
		if err := w.src.Watch(above); err != nil && !errors.Is(err, fs.ErrNotExist) {
			w.startPolling(err)
		}
		// The next folder may have been created before the watch: start again.
		if child := w.childToward(above); child != w.opt.Root {
			if info, err := os.Stat(child); err == nil && info.IsDir() {
				w.src.Unwatch(above)
				w.watchAncestor()
			}
		}
		return
	}
}

// childToward returns the child of above that is the root or contains it.
func (w *Watcher) childToward(above string) string {
	rest, err := filepath.Rel(above, w.opt.Root)
	if err != nil {
		return w.opt.Root
	}
	first, _, _ := strings.Cut(rest, string(filepath.Separator))
	return filepath.Join(above, first)
}
