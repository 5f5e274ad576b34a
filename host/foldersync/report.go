package foldersync

import (
	"slices"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// reported is the part of a file's state that is compared with the last report.
type reported struct {
	state    State
	claim    sentinels.ID
	revision int
	plugin   string
	digest   string // of a plugin: the same one in another build is news
	problems string
}

// tell passes on what is new about one file.
func (r *Syncer) report(f *file) bool {
	// Problems as text: that is what a person would compare.
	now := reported{state: f.state, claim: f.claim, revision: f.mark.Revision, plugin: f.plugin}
	if f.kind == KindPlugin {
		now.digest = f.digest
	}
	if len(f.problems) > 0 {
		now.problems = f.problems.Error()
	}
	if now == f.reported {
		return false
	}
	f.reported = now
	if r.opt.Changed != nil {
		r.opt.Changed(f.info())
	}
	return true
}

// logProblems logs the first problem of a file with what to do about it, and how many
// there are: `sentinel validate` shows them all.
func (r *Syncer) logProblems(message string, f *file, list sentinels.Problems) {
	args := []any{"file", f.shown, "problem", list[0].String()}
	if list[0].Hint != "" {
		args = append(args, "hint", list[0].Hint)
	}
	r.opt.Logger.Warn(message, append(args, "problems", len(list))...)
}

// reportAll passes on what is new and makes it what is shown, as a copy: readers
// never wait for a batch, and see the files as they were between two.
func (r *Syncer) reportAll() {
	list := make([]*file, 0, len(r.files))
	for _, f := range r.files {
		list = append(list, f)
	}
	slices.SortFunc(list, compareFiles)
	shown := make([]FileInfo, 0, len(list))
	for _, f := range list {
		r.report(f)
		shown = append(shown, f.info())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shown = shown
}

// Files returns every watched file, the host's own folder first. It does not
// wait for work that is under way.
func (r *Syncer) Files() []FileInfo {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.shown)
}

// Problems returns what is wrong with files of definitions, in the order of the files.
// Those of a definition that is live come from a newer content of its file, or from a
// plugin that is gone: they do not concern active runs.
func (r *Syncer) Problems() sentinels.Problems {
	var out sentinels.Problems
	for _, f := range r.Files() {
		if f.Kind != KindPlugin {
			out = append(out, f.Problems...)
		}
	}
	return out
}
