package files

import (
	"io/fs"
	"path"
	"strings"
	"time"
)

// look finds out what a touched path is by now and acts on that.
func (w *Watcher) look(t *tree, rel string, since touch) {
	if rel == "." {
		w.watchAbove()
		w.scanTree(".")
		return
	}
	// The link itself is asked about first: where it leads says nothing about
	// what other paths lead through it.
	info, err := t.lstat(rel)
	switch {
	case err != nil && !missing(err):
		w.touch(rel, true) // ask again; the rescan does if this is dropped
	case err != nil:
		if w.known(rel) {
			w.scanTree(rel)
		}
		w.check(t, rel, since)
	case info.IsDir():
		w.check(t, rel, since) // where a file was, there may be a folder
		if w.entered(rel) {
			w.scanTree(rel)
		}
	case info.Mode()&fs.ModeSymlink != 0:
		w.check(t, rel, since)
		if target, err := t.stat(rel); err != nil || target.IsDir() || !w.wanted(rel) {
			// Other links may lead through it, and files if it is a folder's.
			w.scanTree(path.Dir(rel))
		}
	default:
		w.check(t, rel, since)
	}
}

// known reports whether rel was a folder with files in it or a watched one.
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

// check compares one file with what is remembered and tells of a difference. The
// order is that of the cost: a pattern, a stat, a hash. Most hints end with the
// first or second.
func (w *Watcher) check(t *tree, rel string, since touch) {
	old := w.index[rel]
	if !w.wanted(rel) {
		if old != nil { // nobody asks for it any more
			w.mu.Lock()
			delete(w.index, rel)
			w.mu.Unlock()
		}
		return
	}
	info, err := t.stat(rel)
	switch {
	case err != nil && !missing(err):
		return // the rescan asks again
	case err != nil || !info.Mode().IsRegular():
		w.set(rel, nil)
		return
	case old != nil && !old.racy && old.stamp == stampOf(info):
		return
	}
	e, quiet := w.examine(t, rel)
	if e == nil || !quiet && time.Since(since.first) < patience*w.opt.Debounce {
		w.retouch(rel, since)
		return
	}
	w.set(rel, e)
	if e.racy {
		w.touch(rel, true)
	}
}

// retouch puts a path back that is being written, without making its patience
// begin anew.
func (w *Watcher) retouch(rel string, since touch) {
	w.mu.Lock()
	w.touched[rel] = touch{first: since.first, last: time.Now()}
	w.mu.Unlock()
}

// examine reads a file's state; nil if it went away meanwhile. quiet says that
// nobody wrote while it was read. A file that cannot be read has a state
// without a hash, so that it is told of and whoever reads it learns why.
func (w *Watcher) examine(t *tree, rel string) (e *entry, quiet bool) {
	info, err := t.stat(rel)
	if err != nil || !info.Mode().IsRegular() {
		return nil, false
	}
	e = &entry{stamp: stampOf(info)}
	// Taken before the content is read: a write during the reading must not look
	// older than the reading.
	now := time.Now()
	e.racy = e.stamp.recent(now)
	if info.Size() > w.opt.HashLimit {
		return e, true
	}
	sum, after, quiet, err := t.hash(rel, w.opt.HashLimit)
	if err != nil {
		return e, true // gone or closed to us; whoever reads it finds out
	}
	if after.Size() > w.opt.HashLimit {
		return e, quiet
	}
	e.stamp, e.sum, e.hashed = stampOf(after), sum, true
	e.racy = e.stamp.recent(now)
	return e, quiet
}

// wanted reports whether any subscription wants a file.
func (w *Watcher) wanted(rel string) bool {
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
		if g.wants(rel) {
			return true
		}
	}
	return false
}

// entered reports whether a folder can hold files that anybody wants.
func (w *Watcher) entered(rel string) bool {
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

// set makes after the remembered state of a file and tells who wants it.
func (w *Watcher) set(rel string, after *entry) {
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
		return // only its times are others, and those are remembered now
	}
	for _, g := range w.groups {
		if !g.wants(rel) {
			continue
		}
		// One change of the mark and one match for all subscriptions of the group.
		g.mark.replace(rel, before, after)
		if g.mark.Files > w.opt.MaxFiles {
			g.fail(crowded(w.opt))
			delete(w.groups, g.key)
			continue
		}
		for s := range g.subs {
			s.note(rel, before, after)
		}
	}
}
