package pluginset

import (
	"context"
	"slices"
	"sync"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A View is the plugins as one iteration of a run sees them: the table that was
// live when the iteration began, and old modules with which its parked steps
// continue. It ends with the iteration.
type View struct {
	set   *Set
	table *Table // held
	types *Table // table, and the types of parked steps that it does not have

	mu   sync.Mutex
	past map[string]*Module // by digest, each held
}

// View begins the view of an iteration. It must be ended.
func (s *Set) View() *View {
	t := s.Use()
	return &View{set: s, table: t, types: t}
}

// PastView is the view of an iteration that a crash interrupted: the step types that
// its unfinished steps began with are there, even if their plugin has been
// removed meanwhile. A module that cannot be had is left out; the step that asks
// for it is an error with the reason.
func (s *Set) PastView(ctx context.Context, unfinished []Began) *View {
	v := s.View()
	var more []*Module
	for _, b := range unfinished {
		if v.table.byType[b.Type] != nil {
			continue
		}
		if m, err := v.ByDigest(ctx, b.Digest); err == nil && !slices.Contains(more, m) {
			more = append(more, m)
		}
	}
	if len(more) == 0 {
		return v
	}
	if t, err := v.table.with(more); err == nil {
		v.types = t
	}
	return v
}

// Began is the step type and the module that an attempt began with.
type Began struct {
	Type   sentinels.StepType
	Digest string
}

// Types returns the step types of the view.
func (v *View) Types() *sentinels.TypeSet { return v.types.types }

// Live returns the step types that were live when the view began, and how often
// plugins had been changed by then since the set was filled.
func (v *View) Live() (types *sentinels.TypeSet, swaps int) { return v.table.types, v.table.swaps }

// Lookup returns the module that executes a new step of the iteration.
func (v *View) Lookup(t sentinels.StepType) (*Module, error) {
	m, err := v.types.Lookup(t)
	if err != nil {
		if e := v.set.Absent(t); e != nil {
			return nil, e
		}
	}
	return m, err
}

// ByDigest returns a module for as long as the view is there.
func (v *View) ByDigest(ctx context.Context, digest string) (*Module, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if m, ok := v.past[digest]; ok {
		return m, nil
	}
	m, err := v.set.module(ctx, digest)
	if err != nil {
		return nil, err
	}
	if v.past == nil {
		v.past = map[string]*Module{}
	}
	v.past[digest] = m
	return m, nil
}

// End releases everything. A nil view has nothing.
func (v *View) End() {
	if v == nil {
		return
	}
	v.set.Done(v.table)
	v.set.mu.Lock()
	defer v.set.mu.Unlock()
	for _, m := range v.past {
		v.set.release(m)
	}
	v.past = nil
}
