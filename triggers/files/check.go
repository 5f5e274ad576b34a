package files

import (
	"io/fs"
	"path"
	"strings"
	"time"
)

// checkPath checks a dirty path, which may be a file, a folder, a link or missing.
func (w *Watcher) checkPath(t *tree, rel string, since dirtyTime) {
	if rel == "." {
		w.watchAncestor()
		w.scanTree(".")
		return
	}
	// lstat, because other paths may lead through a link.
	info, err := t.lstat(rel)
	switch {
	case err != nil && !missing(err):
		w.markDirty(rel, true) // try again; if this is dropped, the rescan does
	case err != nil:
		if w.known(rel) {
			w.scanTree(rel)
		}
		w.checkFile(t, rel, since)
	case info.IsDir():
		w.checkFile(t, rel, since) // the folder may have replaced a file
		if w.enters(rel) {
			w.scanTree(rel)
		}
	case info.Mode()&fs.ModeSymlink != 0:
		w.checkFile(t, rel, since)
		if target, err := t.stat(rel); err != nil || target.IsDir() || !w.matches(rel) {
			// Files and other links may be reached through it.
			w.scanTree(path.Dir(rel))
		}
	default:
		w.checkFile(t, rel, since)
	}
}

// known reports whether rel is a watched folder or has files in the index.
func (w *Watcher) known(rel string) bool {
	if _, ok := w.watched[rel]; ok {
		return true
	}
	for p := range w.index {
		if strings.HasPrefix(p, rel+"/") {
			return true
		}
	}
	return false
}

// checkFile compares one file with the index and updates it. Cheap comparisons
// come first: patterns, then stat, then the hash. Most hints need only the first
// two.
func (w *Watcher) checkFile(t *tree, rel string, since dirtyTime) {
	old := w.index[rel]
	if !w.matches(rel) {
		if old != nil { // no subscription matches it any longer
			w.mu.Lock()
			delete(w.index, rel)
			w.mu.Unlock()
		}
		return
	}
	info, err := t.stat(rel)
	switch {
	case err != nil && !missing(err):
		return // the rescan tries again
	case err != nil || !info.Mode().IsRegular():
		w.update(rel, nil)
		return
	case old != nil && !old.racy && old.stamp == stampOf(info):
		return
	}
	e, quiet := w.readEntry(t, rel)
	if e == nil || !quiet && time.Since(since.first) < maxDebounces*w.opt.Debounce {
		w.requeue(rel, since)
		return
	}
	w.update(rel, e)
	if e.racy {
		w.markDirty(rel, true)
	}
}

// requeue marks a path dirty again that is being written. It keeps since.first,
// so that the limit of maxDebounces applies.
func (w *Watcher) requeue(rel string, since dirtyTime) {
	w.mu.Lock()
	w.dirty[rel] = dirtyTime{first: since.first, last: time.Now()}
	w.mu.Unlock()
}

// readEntry reads a file's state. It returns nil if the file was deleted
// meanwhile. quiet reports that the file was not written during the reading. A
// file that cannot be read has a state without a hash: its change is reported,
// and a subscriber that reads it gets the error.
func (w *Watcher) readEntry(t *tree, rel string) (e *entry, quiet bool) {
	info, err := t.stat(rel)
	if err != nil || !info.Mode().IsRegular() {
		return nil, false
	}
	e = &entry{stamp: stampOf(info)}
	// The time is taken before the content is read, so that a write during the
	// reading does not look older than the reading.
	now := time.Now()
	e.racy = e.stamp.recent(now)
	if info.Size() > w.opt.HashLimit {
		return e, true
	}
	sum, after, quiet, err := t.hash(rel, w.opt.HashLimit)
	if err != nil {
		return e, true // deleted or not readable; a subscriber that reads it gets the error
	}
	if after.Size() > w.opt.HashLimit {
		return e, quiet
	}
	e.stamp, e.sum, e.hashed = stampOf(after), sum, true
	e.racy = e.stamp.recent(now)
	return e, quiet
}

// matches reports whether any subscription matches a file.
func (w *Watcher) matches(rel string) bool {
	if isTemporary(path.Base(rel)) {
		return false
	}
	for dir := path.Dir(rel); dir != "."; dir = path.Dir(dir) {
		if isSkipped(dir) {
			return false
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, g := range w.groups {
		if g.matches(rel) {
			return true
		}
	}
	return false
}

// enters reports whether a folder can contain files that any subscription matches.
func (w *Watcher) enters(rel string) bool {
	for dir := rel; dir != "."; dir = path.Dir(dir) {
		if isSkipped(dir) {
			return false
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, g := range w.groups {
		if g.enters(rel) {
			return true
		}
	}
	return false
}

// update sets the state of a file in the index, nil for a missing file, and adds
// the change to the subscriptions that match.
func (w *Watcher) update(rel string, after *entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.index[rel]
	if before == nil && after == nil {
		return
	}
	if after == nil {
		delete(w.index, rel)
	} else {
		w.index[rel] = after
	}
	if same(before, after) {
		return // only the times differ; the index has the new ones
	}
	for _, g := range w.groups {
		if !g.matches(rel) {
			continue
		}
		// The subscriptions of a group share one fingerprint and one match.
		g.fingerprint.replace(rel, before, after)
		if g.fingerprint.Files > w.opt.MaxFiles {
			g.fail(tooManyFiles(w.opt))
			delete(w.groups, g.key)
			continue
		}
		for s := range g.subs {
			s.add(rel, before, after)
		}
	}
}
