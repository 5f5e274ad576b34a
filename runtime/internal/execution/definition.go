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
	without := have.def
	if !ofPerson(begin) {
		without = nil // of its own sentinel an agent sets the limits
	}
	next, err := ex.keepLimits(begin.Sentinel, definitionVersion{def: def, hash: hash, revision: stored.Revision, within: stored.Within, maker: stored.Agent()}, without)
	if err != nil {
		ex.svc.Log.Warn("the limits that a person gave cannot be read, the run keeps its current definition", "sentinel", begin.Sentinel, "revision", stored.Revision, "error", err)
		return have
	}
	return next
}

// keepLimits returns a stored revision as a run uses it. What an agent or a model has made of a person's sentinel and
// no person has accepted changes steps, but does not raise a limit, for any starter of the run: that is the decision
// of a person, as in a resume. The limits are those of the newest revision of a person, or of the definition without.
func (ex *Executor) keepLimits(id sentinels.ID, next definitionVersion, without *sentinels.Definition) (definitionVersion, error) {
	if next.within == nil || next.revision == 0 {
		return next, nil
	}
	def, _, err := ex.RaisedLimits(id, next.revision, next.def, without)
	if err == nil && def != next.def {
		next.def, next.hash = def, def.Hash()
	}
	return next, err
}

// ofPerson reports whether a run was started for a person, with a definition of a person.
func ofPerson(begin *journal.RunStartBody) bool {
	return emitsFor(begin.As, begin.Within != nil) == ""
}

// RaisedLimits returns a revision of a stored definition with the limits that its runs have while no person has
// accepted it, and the fields in which they differ. without is the definition with these limits if no
// revision of a person is stored; nil if there is none, and all limits count.
func (ex *Executor) RaisedLimits(id sentinels.ID, number int, def, without *sentinels.Definition) (*sentinels.Definition, []string, error) {
	before, err := ex.opt.Definitions.OfPerson(id, number)
	if err != nil {
		return nil, nil, err
	}
	if before.Revision != 0 { // its step types may be gone, which does not matter here
		without = sentinels.Lenient(before.Definition, ex.opt.Definitions.DecodeOptions(string(id)))
	}
	if without == nil {
		return def, nil, nil
	}
	def, raised := def.WithLimitsOf(without, ex.defaultLimits())
	return def, raised, nil
}

// defaultLimits returns the limits of definitions that set none.
func (ex *Executor) defaultLimits() sentinels.Safety {
	limits := ex.svc.Limits
	return sentinels.Safety{
		MaxStepTimeoutMs: limits.StepTimeout.Milliseconds(), MaxSteps: limits.Steps, MaxMemoryMB: min(limits.Memory, limits.VariableMemory) >> 20,
	}
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
	if used, err = ex.readDefinition(d.Used, d.Start, types); err != nil || d.Own == nil {
		return used, nil, err
	}
	c, err := ex.readDefinition(*d.Own, d.Start, types)
	return used, &c, err
}

// readDefinition decodes a recorded definition with the given step types. If a secret was removed
// from the record, it is the stored revision.
func (ex *Executor) readDefinition(d history.Definition, begin *journal.RunStartBody, types *sentinels.TypeSet) (definitionVersion, error) {
	id := begin.Sentinel
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
	v := definitionVersion{def, hash, d.Revision, d.Edit, d.Within, d.Maker}
	if err == nil && d.Value.IsRedacted() { // the text is that of the author, not of the run
		v, err = ex.keepLimits(id, v, nil)
	}
	return v, err
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
