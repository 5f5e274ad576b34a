package execution

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/sentinel-runtime/sentinel/runtime/internal/execution/step"
	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/revision"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A definitionVersion is a decoded definition together with where it came from: a
// stored revision, an edit of the run, or neither.
type definitionVersion struct {
	def      *sentinels.Definition
	hash     string
	revision int // revision of the stored sentinel, 0 if it is not stored; for an edit, the revision that was edited
	edit     int // number of the run's own edit, 0 if it is not one

	// within bounds the commands of its runs, nil if it does not. That of the definition that
	// a run starts with is part of RunStartBody.Within.
	within []string
	maker  string // agent that made it, if it has a bound: its runs execute for this agent
}

// same reports whether both are the same version. The definitions are not compared:
// they may be two decodings of one text.
func (c definitionVersion) same(other definitionVersion) bool {
	return c.hash == other.hash && c.revision == other.revision && c.edit == other.edit
}

// errEdited ends a wait between iterations when the run's definition may have changed,
// because an edit may change what the loop waits for.
var errEdited = errors.New("the definition was edited")

// current returns the definition that the run has in memory: its own edit if it has
// one, else the definition of the current iteration.
func (r *liveRun) current() definitionVersion {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ownEdit != nil {
		return *r.ownEdit
	}
	return definitionVersion{r.def, r.hash, r.revision, r.edit, r.within, r.maker}
}

// newest returns the definition for the next iteration of the run.
func (r *liveRun) newest() definitionVersion { return r.ex.newest(r.begin, r.current()) }

// newest returns the definition for the next iteration of a run that has one in memory.
// That is the newest revision of the stored sentinel, unless the run has an edit of its
// own, is pinned, or was started from a definition that is not stored.
func (ex *Executor) newest(begin *journal.RunStartBody, have definitionVersion) definitionVersion {
	if have.edit != 0 || have.revision == 0 || begin.Pinned {
		return have
	}
	stored, err := ex.opt.Definitions.Head(begin.Sentinel)
	if err != nil {
		ex.svc.Log.Warn("newest revision cannot be read, the run keeps its current definition", "sentinel", begin.Sentinel, "error", err)
		return have
	}
	if stored.Deleted || stored.Revision == 0 || stored.Revision == have.revision {
		return have // runs of a deleted sentinel keep their definition
	}
	def, hash, err := ex.opt.Definitions.DecodeStored(stored.Definition, stored.ID)
	if err != nil {
		ex.svc.Log.Warn("newest revision cannot be decoded, the run keeps its current definition", "sentinel", begin.Sentinel, "revision", stored.Revision, "error", err)
		return have
	}
	return definitionVersion{def: def, hash: hash, revision: stored.Revision, within: stored.Within, maker: stored.Agent()}
}

// cancelOnEdit returns a context for a wait between iterations. It is cancelled with
// errEdited when the run's definition may have changed. The caller calls the returned
// function when the wait is over.
func (r *liveRun) cancelOnEdit() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(r.ctx)
	r.mu.Lock()
	r.wake = cancel
	r.mu.Unlock()
	return ctx, func() {
		r.mu.Lock()
		r.wake = nil
		r.mu.Unlock()
		cancel(nil)
	}
}

// wakeForEdit ends the run's wait between iterations, if it is in one, with errEdited.
func (r *liveRun) wakeForEdit() {
	r.mu.Lock()
	wake := r.wake
	r.mu.Unlock()
	if wake != nil {
		wake(errEdited)
	}
}

// wakeForRevision wakes the runs of a sentinel that wait between iterations, so that
// they use its new revision.
func (ex *Executor) wakeForRevision(s revision.Stored) {
	ex.mu.Lock()
	var waiting []*liveRun
	for _, r := range ex.runs {
		if r.begin.Sentinel == s.ID && r.begin.Revision != 0 && !r.begin.Pinned {
			waiting = append(waiting, r)
		}
	}
	ex.mu.Unlock()
	for _, r := range waiting {
		r.wakeForEdit()
	}
}

// An encodedDefinition is a definition as records contain it. The run keeps the last
// one so that a loop of many short iterations does not encode it in each.
type encodedDefinition struct {
	hash  string
	value journal.Value
}

// recordDefinition returns the definition of c for a record, empty if the run's first
// record contains it already.
func (r *liveRun) recordDefinition(c definitionVersion) (journal.Value, error) {
	if c.hash == r.begin.Hash {
		return journal.Value{}, nil
	}
	r.mu.Lock()
	kept := r.recordedDefinition
	r.mu.Unlock()
	if kept.hash == c.hash {
		return kept.value, nil
	}
	canonical, err := json.Marshal(c.def)
	if err != nil {
		return journal.Value{}, err
	}
	value, err := r.ex.svc.Values.Definition(canonical)
	if err != nil {
		return journal.Value{}, err
	}
	r.mu.Lock()
	r.recordedDefinition = encodedDefinition{c.hash, value}
	r.mu.Unlock()
	return value, nil
}

// readDefinitions decodes the definition that a run used last, and the run's own edit,
// nil if it has none.
func (ex *Executor) readDefinitions(d *history.Definitions, types *sentinels.TypeSet) (used definitionVersion, own *definitionVersion, err error) {
	id := d.Start.Sentinel
	if used, err = ex.readDefinition(d.Used, id, types); err != nil || d.Own == nil {
		return used, nil, err
	}
	c, err := ex.readDefinition(*d.Own, id, types)
	return used, &c, err
}

// readDefinition decodes a recorded definition with the given step types. If a secret was removed
// from the record, it is the stored revision.
func (ex *Executor) readDefinition(d history.Definition, id sentinels.ID, types *sentinels.TypeSet) (definitionVersion, error) {
	raw, err := ex.svc.Values.Load(d.Value)
	if err == nil && d.Value.IsRedacted() {
		raw, err = ex.unredacted(d, id)
	}
	if err != nil {
		return definitionVersion{}, err
	}
	opt := ex.opt.Definitions.DecodeOptions(string(id))
	opt.Types = types
	def, hash, err := ex.opt.Definitions.DecodeStoredWith(raw, opt)
	return definitionVersion{def, hash, d.Revision, d.Edit, d.Within, d.Maker}, err
}

// unredacted returns the definition of a record from which a secret was removed, as it was stored
// by its author.
func (ex *Executor) unredacted(d history.Definition, id sentinels.ID) (json.RawMessage, error) {
	if d.Revision > 0 && d.Edit == 0 {
		if stored, err := ex.opt.Definitions.Revision(id, d.Revision); err == nil && !stored.Deleted {
			return stored.Definition, nil
		}
	}
	return nil, step.RedactedError(id)
}
