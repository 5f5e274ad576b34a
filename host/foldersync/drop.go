package foldersync

import (
	"context"
	"os"
	"time"
)

// drop ends files that are gone for good. It looks once more, since a folder may
// have been written anew just now and its notification be on the way. It returns
// the files that come to an id by that, and whether step types have changed.
func (r *Syncer) drop(ctx context.Context, gone []*file) (dirty []*file, types bool) {
	unloaded := false
	for _, f := range gone {
		if _, err := os.Stat(f.root.dir); err != nil {
			// The folder itself is away, like a disk that is not mounted: that says
			// nothing about the files in it.
			f.missing = time.Now()
			continue
		}
		if f.root.watcher.Exists(f.rel) {
			f.missing, f.state = time.Time{}, Invalid // until it is read
			if f.kind != KindPlugin {
				dirty = append(dirty, f)
				continue
			}
			types = r.loadPlugins(ctx, []*file{f}) || types
			continue
		}
		if f.kind == KindPlugin {
			r.unloadPlugin(ctx, f)
			unloaded = true
		}
		dirty = append(dirty, r.endFile(ctx, f)...)
	}
	if unloaded {
		// What was in conflict with a plugin that is gone may be live now.
		r.loadPlugins(ctx, r.refusedPlugins())
		types = true
	}
	return dirty, types
}

// endFile lets go of a file, and of the definition that lives in it unless
// another file has it too: that one is returned, it has to be read.
func (r *Syncer) endFile(ctx context.Context, f *file) (dirty []*file) {
	id := f.claim
	f.claim, f.state = "", Gone
	delete(r.files, f.origin)
	r.keepLine(line{File: f.origin})
	r.report(f)
	if id == "" {
		return nil
	}
	for _, other := range r.claimants(id) {
		switch {
		case !other.missing.IsZero():
		case other.state == Live:
			return nil // it was renamed
		default:
			return []*file{other}
		}
	}
	r.deleteIfOurs(ctx, f, id)
	return nil
}

// keepLine writes lines of marks. An error costs a reading at the next start at
// worst; all marks are written when they are tried again.
func (r *Syncer) keepLine(l ...line) {
	err := r.marks.write(l...)
	if err != nil {
		r.tryAgain()
		if !r.unmarked {
			r.opt.Logger.Warn("marks of files cannot be written; trying again", "file", r.opt.Marks, "error", err)
		}
	}
	r.unmarked = err != nil
}

// tryAgain has what failed for no fault of a file tried again after a while.
func (r *Syncer) tryAgain() {
	if r.again.IsZero() {
		r.again = time.Now().Add(r.opt.Retry)
		r.rouse()
	}
}

// keep remembers what is the same in files and store by now: one write for all
// that a batch has changed, after it is stored. A crash in between costs a
// reading, which finds the same definition.
func (r *Syncer) keep(ctx context.Context) {
	var lines []line
	for _, f := range r.files {
		if f.kind == KindPlugin || f.mark == r.marks.get(f.origin) {
			continue
		}
		l := line{File: f.origin}
		if f.mark != (mark{}) {
			m := f.mark
			l.Mark = &m
		}
		lines = append(lines, l)
	}
	// The step types are noted only when all files were checked with them.
	if types := r.typesKey(); types != r.marks.types && ctx.Err() == nil {
		lines = append(lines, line{Types: types})
	}
	r.keepLine(lines...)
}
