package foldersync

import (
	"context"
	"os"
	"time"
)

// drop ends files whose grace period is over. It checks each once more, since the
// folder may have been replaced and its notification not have arrived. It returns
// the files that get an id thereby, and whether step types have changed.
func (r *Syncer) drop(ctx context.Context, gone []*file) (dirty []*file, types bool) {
	unloaded := false
	for _, f := range gone {
		if _, err := os.Stat(f.root.dir); err != nil {
			// The folder itself is missing, such as a disk that is not mounted. The
			// files in it may still exist.
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

// endFile forgets a file and deletes its definition, unless another file has the
// same id: that file is returned and must be read.
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

// keepLine writes lines of marks. After an error all marks are written at the
// retry; a crash before that costs reading the files at the next start.
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

// tryAgain schedules a retry of what failed without a fault of the file.
func (r *Syncer) tryAgain() {
	if r.again.IsZero() {
		r.again = time.Now().Add(r.opt.Retry)
		r.rouse()
	}
}

// keep writes the marks that a batch has changed, in one write after the batch is
// stored. After a crash in between the files are read again, without effect.
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
