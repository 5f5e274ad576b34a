package runtime

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A chosen definition is one that an iteration uses.
type chosen struct {
	def      *sentinels.Definition
	hash     string
	revision int // of the stored sentinel; 0 if there is none. With an edit: what that was made on
	edit     int // number of the run's own edit; 0 for none
}

// same reports whether a decision that was made with other still holds. The
// definitions themselves may be two readings of one text.
func (c chosen) same(other chosen) bool {
	return c.hash == other.hash && c.revision == other.revision && c.edit == other.edit
}

// errEdited ends a wait between iterations: what is waited for may be another thing
// now.
var errEdited = errors.New("the definition was edited")

// current returns what the run has in memory: its own edit, else what the
// current iteration uses.
func (r *run) current() chosen {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.own != nil {
		return *r.own
	}
	return chosen{r.def, r.hash, r.revision, r.edit}
}

// edits returns the number of the run's newest own edit. The caller holds r.mu.
func (r *run) edits() int {
	if r.own == nil {
		return 0
	}
	return r.own.edit
}

// newest returns the definition for the next iteration: the run's own edit, else the
// newest revision of the stored sentinel, unless the run is pinned or was
// started from a definition that is not stored.
func (r *run) newest() chosen {
	have := r.current()
	if have.edit != 0 || have.revision == 0 || r.begin.Pinned {
		return have
	}
	stored, err := r.rt.defs.Head(r.begin.Sentinel)
	if err != nil {
		r.rt.log.Warn("newest revision cannot be read, the run keeps its own", "run", r.id, "error", err)
		return have
	}
	if stored.Deleted || stored.Revision == 0 || stored.Revision == have.revision {
		return have // of a deleted sentinel the runs continue with what they have
	}
	def, hash, err := r.rt.defs.DecodeStored(stored.Definition, stored.ID)
	if err != nil {
		r.rt.log.Warn("newest revision cannot be used, the run keeps its own", "run", r.id, "revision", stored.Revision, "error", err)
		return have
	}
	return chosen{def: def, hash: hash, revision: stored.Revision}
}

// cancelOnEdit returns a context for a wait between iterations that ends with
// errEdited when the run's definition may have changed. The wait is over with
// the call of the function.
func (r *run) cancelOnEdit() (context.Context, func()) {
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

// edited wakes the run if it waits between iterations.
func (r *run) edited() {
	r.mu.Lock()
	wake := r.wake
	r.mu.Unlock()
	if wake != nil {
		wake(errEdited)
	}
}

// wakeFollowers has the runs of a sentinel that wait between iterations look at its
// new revision.
func (rt *Runtime) wakeFollowers(s Stored) {
	rt.mu.Lock()
	var waiting []*run
	for _, r := range rt.runs {
		if r.begin.Sentinel == s.ID && r.begin.Revision != 0 && !r.begin.Pinned {
			waiting = append(waiting, r)
		}
	}
	rt.mu.Unlock()
	for _, r := range waiting {
		r.edited()
	}
}

// A encodedDefinition is a definition in the form records have it, so that a loop
// of many short iterations does not encode it in each.
type encodedDefinition struct {
	hash  string
	value journal.Value
}

// recordDefinition returns c's definition for a record, empty if it is what the run began
// with.
func (r *run) recordDefinition(c chosen) (journal.Value, error) {
	if c.hash == r.begin.Hash {
		return journal.Value{}, nil
	}
	r.mu.Lock()
	kept := r.inJournal
	r.mu.Unlock()
	if kept.hash == c.hash {
		return kept.value, nil
	}
	canonical, err := json.Marshal(c.def)
	if err != nil {
		return journal.Value{}, err
	}
	value, err := r.rt.value(canonical)
	if err != nil {
		return journal.Value{}, err
	}
	r.mu.Lock()
	r.inJournal = encodedDefinition{c.hash, value}
	r.mu.Unlock()
	return value, nil
}
