package foldersync

import (
	"fmt"
	"path/filepath"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/glob"
)

// heads are the newest revisions in the store, read once for a whole start.
func (r *Syncer) heads() (map[sentinels.ID]runtime.Stored, error) {
	list, err := r.opt.Definitions.Definitions()
	if err != nil {
		return nil, err
	}
	heads := make(map[sentinels.ID]runtime.Stored, len(list))
	for _, s := range list {
		heads[s.ID] = s
	}
	return heads, nil
}

// orphans finds the definitions whose file was deleted while the host was not
// running. It handles them like files that are deleted now.
func (r *Syncer) orphans(heads map[sentinels.ID]runtime.Stored) {
	for id, s := range heads {
		if s.Origin == "" || r.files[s.Origin] != nil {
			continue
		}
		if root, rel, ok := r.place(s.Origin); ok {
			f := r.newFile(root, rel)
			f.claim = id
			r.files[f.origin] = f
			r.miss(f)
		}
	}
}

// watches reports whether a file, there or not, is one that is watched.
func (r *Syncer) watches(origin string) bool {
	_, _, ok := r.place(origin)
	return ok
}

// place finds the root that an origin is watched in. The patterns of roots have
// meta characters in their last part alone.
func (r *Syncer) place(origin string) (*root, string, bool) {
	for _, root := range r.roots {
		rel, err := filepath.Rel(root.dir, origin)
		if err != nil {
			continue
		}
		rel = filepath.ToSlash(rel)
		for _, p := range root.patterns {
			if pattern, err := glob.Parse(p); err == nil && pattern.Match(rel) {
				return root, rel, true
			}
		}
	}
	return nil, "", false
}

// resume restores the state of a file whose digest is that of its mark, without
// reading it. It reports false if the file must be read.
func (r *Syncer) resume(f *file, heads map[sentinels.ID]runtime.Stored) bool {
	f.digest = f.mark.Digest
	head, there := heads[f.mark.ID]
	switch {
	case r.opt.Trust.Check(f.origin) != nil: // reading it says why
		return false
	case !there: // deleted, or a store that is not the one the marks belong to
		return r.removed(f)
	case head.Origin != f.origin || head.Revision < f.mark.Revision:
		return false // another file's by now, or another store
	case head.Revision == f.mark.Revision:
		f.state = Live
		return head.Hash == f.mark.Hash
	case head.Within != nil: // a person has not accepted it
		f.state = Live
		return true
	}
	// The store is newer: the process ended between the two writes of an edit.
	if err := r.writeFile(f, head); err != nil {
		r.opt.Logger.Warn("revision in the store cannot be written to its file", "file", f.shown, "revision", head.Revision, "error", err)
		f.invalid(f.problem("file", fmt.Sprintf("revision %d cannot be written to it: %v", head.Revision, err), ""))
	}
	return true
}

// removed ends a file whose definition was deleted elsewhere just before the
// process ended. Only a tombstone that says so is reason enough.
func (r *Syncer) removed(f *file) bool {
	list, err := r.opt.Definitions.Revisions(f.mark.ID)
	if err != nil || len(list) == 0 {
		return false
	}
	if t := list[0]; !t.Deleted || t.Revision <= f.mark.Revision || t.Origin != f.origin || t.By == byFile {
		return false
	}
	if err := r.removeFile(f); err != nil {
		r.opt.Logger.Warn("file of a deleted definition cannot be removed", "file", f.shown, "error", err)
		return false
	}
	return true
}
