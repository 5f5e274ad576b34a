package history

import (
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
)

// A Definition refers to a definition that a run used.
type Definition struct {
	Value    journal.Value // canonical JSON
	Revision int           // of the stored sentinel, 0 if it is not stored
	Edit     int           // number of the run's edit, 0 if it is not an edit
	Within   []string      // commands that bound it, nil for no bound
	Maker    string        // agent that made it, if it has a bound
}

// Definitions are the definitions of a run. They are known also where the rest
// of the state is incomplete.
type Definitions struct {
	Start *journal.RunStartBody
	Used  Definition  // by the newest iteration
	Own   *Definition // by the newest edit of the run alone, nil if there is none
}

// Edits returns the number of the newest edit of the run, 0 if there is none.
func (d *Definitions) Edits() int {
	if d.Own == nil {
		return 0
	}
	return d.Own.Edit
}

// Unload removes the texts of the definitions. Which ones the run uses stays known.
func (d *Definitions) Unload() {
	d.Used.Value = journal.Value{}
	if d.Own != nil && !d.Own.Value.Empty() {
		d.Own = &Definition{Revision: d.Own.Revision, Edit: d.Own.Edit, Within: d.Own.Within, Maker: d.Own.Maker}
	}
}

func newDefinitions(start *journal.RunStartBody) Definitions {
	return Definitions{Start: start, Used: Definition{Value: start.Definition, Revision: start.Revision}}
}

func (d *Definitions) add(rec *journal.Record) {
	switch {
	case rec.IterationStart != nil:
		b := rec.IterationStart
		d.use(d.DefinitionOf(b))
	case rec.IterationEnd != nil:
		b := rec.IterationEnd
		d.use(d.orFirst(Definition{b.Definition, b.Revision, b.Edit, b.Within, b.Maker}))
	case rec.Signal != nil && rec.Signal.Edit != nil:
		b := rec.Signal.Edit
		d.Own = &Definition{b.Definition, b.Revision, b.Number, b.Within, b.Maker}
	}
}

// DefinitionOf returns the definition that an iteration uses.
func (d *Definitions) DefinitionOf(b *journal.IterationStartBody) Definition {
	return d.orFirst(Definition{b.Definition, b.Revision, b.Edit, b.Within, b.Maker})
}

// orFirst returns a definition. Without a value it is the one that the run started with.
func (d *Definitions) orFirst(used Definition) Definition {
	if used.Value.Empty() {
		used.Value = d.Start.Definition
	}
	return used
}

// use notes the definition of an iteration.
func (d *Definitions) use(used Definition) {
	d.Used = used
	// Retention may have removed the signal of the edit.
	if used.Edit >= d.Edits() && used.Edit != 0 {
		d.Own = &used
	}
}
