package runtime

import (
	"errors"
	"fmt"

	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// errEnough ends the reading of a journal.
var errEnough = errors.New("enough")

// fold applies the records of a run to a new state: its first record, then those
// from number from on. before is called with each record before it is applied,
// unless it is nil; its error ends the fold, errEnough without an error.
func (rt *Runtime) fold(id sentinels.RunID, from uint64, before func(seq uint64, rec *journal.Record, st *history.State) error) (*history.State, error) {
	st := &history.State{}
	apply := func(seq uint64, raw []byte) error {
		rec, err := journal.Decode(raw)
		if err != nil {
			return fmt.Errorf("record %d of run %s: %w", seq, id, err)
		}
		if before != nil {
			if err := before(seq, rec, st); err != nil {
				return err
			}
		}
		if err := st.Apply(seq, rec); err != nil {
			return fmt.Errorf("journal of run %s: %w", id, err)
		}
		return nil
	}
	var err error
	if from > 1 {
		err = rt.db.Journal(string(id), 1, func(seq uint64, raw []byte) error {
			if err := apply(seq, raw); err != nil {
				return err
			}
			return errEnough
		})
	}
	if err == nil || errors.Is(err, errEnough) && st.Seq != 0 {
		err = rt.db.Journal(string(id), max(from, 1), apply)
	}
	if errors.Is(err, errEnough) {
		err = nil
	}
	if err == nil && st.Seq == 0 {
		err = errf(abi.NotFound, "run %s has no journal", id)
	}
	return st, err
}

// loadState loads the blobs of the values that a live run works with.
func (rt *Runtime) loadState(st *history.State) error {
	if err := rt.loadScope(st.Scope); err != nil {
		return err
	}
	for _, branch := range st.Branches {
		if err := rt.loadScope(branch); err != nil {
			return err
		}
	}
	return rt.loadValue(&st.RAGContext)
}

func (rt *Runtime) loadScope(s *history.Scope) error {
	for name, v := range s.Variables {
		if err := rt.loadValue(&v); err != nil {
			return fmt.Errorf("variable %q: %w", name, err)
		}
		s.Variables[name] = v
	}
	if err := rt.loadValue(&s.Last); err != nil {
		return fmt.Errorf("output of the last step: %w", err)
	}
	return nil
}

func (rt *Runtime) loadValue(v *journal.Value) error {
	if v.Blob == nil || v.Loaded != nil {
		return nil
	}
	content, err := rt.load(*v)
	if err == nil {
		*v = v.Load(content)
	}
	return err
}

// maxInlineVariables is the size of the values of a scope, in bytes, that a
// record holds beside the blobs.
const maxInlineVariables = 4 * blobSize

// keepScope returns variables for a record that holds all of them: large values are
// blobs. If the others are too many together, all but the smallest are blobs too: a
// value that did not change since the last record is then not written again.
func (rt *Runtime) keepScope(vars map[string]journal.Value) (map[string]journal.Value, error) {
	inline, most := 0, blobSize
	for _, v := range vars {
		if len(v.JSON) <= blobSize {
			inline += len(v.JSON)
		}
	}
	if inline > maxInlineVariables {
		most = 512
	}
	for name, v := range vars {
		if len(v.JSON) <= most {
			continue
		}
		blob, err := rt.keepBlob(v.JSON)
		if err != nil {
			return nil, fmt.Errorf("variable %q: %w", name, err)
		}
		vars[name] = blob
	}
	return vars, nil
}

// readDefinitions decodes, with some step types, the definition that a run used
// last and its own edit, nil if it has none.
func (rt *Runtime) readDefinitions(d *history.Definitions, types *sentinels.TypeSet) (used chosen, own *chosen, err error) {
	id := d.Start.Sentinel
	if used, err = rt.readDefinition(d.Used, id, types); err != nil || d.Own == nil {
		return used, nil, err
	}
	c, err := rt.readDefinition(*d.Own, id, types)
	return used, &c, err
}

// readDefinition decodes a definition with the given step types.
func (rt *Runtime) readDefinition(d history.Definition, id sentinels.ID, types *sentinels.TypeSet) (chosen, error) {
	raw, err := rt.load(d.Value)
	if err != nil {
		return chosen{}, err
	}
	opt := rt.decodeOptions(string(id))
	opt.Types = types
	def, hash, err := rt.defs.DecodeStoredWith(raw, opt)
	return chosen{def, hash, d.Revision, d.Edit}, err
}
