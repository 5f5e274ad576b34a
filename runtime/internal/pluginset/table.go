package pluginset

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A Table is the step types that are live at one moment. It never
// changes, so that an iteration that began with it ends with it.
type Table struct {
	modules []*Module // in the order of loading: it decides inference
	byType  map[sentinels.StepType]*Module
	types   *sentinels.TypeSet

	swaps int // how often plugins were changed since Open
	users int // guarded by Set.mu: views, and the set while it is live
}

func emptyTable() *Table {
	return &Table{byType: map[sentinels.StepType]*Module{}, users: 1}
}

// newTable makes a table of modules. A type that two of them have is refused, with
// every such type named. No schema is compiled for it, since the mutex that
// guards the live table is held meanwhile.
func newTable(modules []*Module) (*Table, error) {
	t := &Table{modules: modules, byType: map[sentinels.StepType]*Module{}, users: 1}
	if len(modules) == 0 {
		return t, nil
	}
	var specs []sentinels.TypeSpec
	var taken []string
	for _, m := range modules {
		for _, spec := range m.specs() {
			if other := t.byType[spec.Type]; other != nil {
				taken = append(taken, fmt.Sprintf("step type %q is already provided by plugin %q", spec.Type, other.Manifest().Name))
				continue
			}
			t.byType[spec.Type] = m
			specs = append(specs, spec)
		}
		taken = append(taken, t.takenCommands(m)...)
	}
	if len(taken) > 0 {
		return nil, failure.New(abi.Conflict, "%s", strings.Join(taken, "; "))
	}
	var err error
	t.types, err = sentinels.NewTypeSet(specs)
	return t, err
}

// with returns t and the types of more that t does not have. The result is
// not a live table and holds nothing: the caller holds t and more.
func (t *Table) with(more []*Module) (*Table, error) {
	next := &Table{modules: slices.Concat(t.modules, more), byType: map[sentinels.StepType]*Module{}}
	var specs []sentinels.TypeSpec
	for _, m := range next.modules {
		for _, spec := range m.specs() {
			if next.byType[spec.Type] == nil {
				next.byType[spec.Type] = m
				specs = append(specs, spec)
			}
		}
	}
	var err error
	next.types, err = sentinels.NewTypeSet(specs)
	return next, err
}

// Lookup returns the module that provides a step type, for as long as the table
// is held.
func (t *Table) Lookup(name sentinels.StepType) (*Module, error) {
	if m, ok := t.byType[name]; ok {
		return m, nil
	}
	names := make([]string, 0, len(t.byType))
	for n := range t.byType {
		names = append(names, string(n))
	}
	sort.Strings(names)
	e := failure.New(abi.NotFound, "no plugin provides step type %q", name)
	if near := sentinels.Suggest(string(name), names); len(near) > 0 {
		e.Hint = fmt.Sprintf("did you mean %q?", near[0])
	}
	return nil, e
}
