package runtime

import (
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A definitionTrail is what a run's records say about the definitions it used,
// taken up one by one from its newest snapshot on.
type definitionTrail struct {
	begin *journal.RunStartBody
	used  trailMark // by the newest pass
	own   trailMark // edit 0: the run has none
}

// A trailMark is one definition on the trail, not yet read.
type trailMark struct {
	value    journal.Value
	revision int
	edit     int
}

// newDefinitionTrail begins with the run's first record: until another one says
// otherwise, its definition is in use.
func newDefinitionTrail(begin *journal.RunStartBody) definitionTrail {
	return definitionTrail{begin: begin, used: trailMark{value: begin.Definition, revision: begin.Revision}}
}

// add takes up one record; most kinds say nothing of definitions. Snapshots of
// early releases have no hash, and then the pass before them has said it.
func (t *definitionTrail) add(rec *journal.Record) {
	switch {
	case rec.IterationStart != nil:
		b := rec.IterationStart
		t.use(b.Definition, b.Revision, b.Edit)
	case rec.IterationEnd != nil && rec.IterationEnd.Hash != "":
		b := rec.IterationEnd
		t.use(b.Definition, b.Revision, b.Edit)
	case rec.Signal != nil && rec.Signal.Edit != nil:
		b := rec.Signal.Edit
		t.own = trailMark{b.Definition, b.Revision, b.Number}
	}
}

// use notes what a record says is in use; without a definition that is the one
// of the run's start.
func (t *definitionTrail) use(v journal.Value, revision, edit int) {
	if v.Empty() {
		v = t.begin.Definition
	}
	t.used = trailMark{v, revision, edit}
	// Its own signal may be older than the snapshot and gone with retention.
	if edit >= t.own.edit && edit != 0 {
		t.own = t.used
	}
}

// read decodes, with some step types, what is left at the end of the trail: what
// the newest pass used, and the run's own edit, nil if there is none.
func (t *definitionTrail) read(rt *Runtime, types *sentinels.TypeSet) (used chosen, own *chosen, err error) {
	if used, err = t.used.read(rt, t.begin.Sentinel, types); err != nil || t.own.edit == 0 {
		return used, nil, err
	}
	c, err := t.own.read(rt, t.begin.Sentinel, types)
	return used, &c, err
}

// read decodes a mark against the step types that are live now.
func (m trailMark) read(rt *Runtime, id sentinels.ID, types *sentinels.TypeSet) (chosen, error) {
	raw, err := rt.load(m.value)
	if err != nil {
		return chosen{}, err
	}
	opt := rt.decodeOptions(string(id))
	opt.Types = types
	def, hash, err := rt.decodeStoredWith(raw, opt)
	return chosen{def, hash, m.revision, m.edit}, err
}
