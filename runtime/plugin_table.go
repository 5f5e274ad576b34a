package runtime

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync/atomic"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A heldModule is a module with what its manifest says of its types, and a count
// of those who may call it.
type heldModule struct {
	module
	types *sentinels.TypeSet                       // its own alone
	marks map[sentinels.StepType]map[string]string // by field, of those that are more than plain data

	trusted bool
	reuse   bool                  // its instances serve several calls
	asks    Grant                 // all that it asks for
	grant   atomic.Pointer[Grant] // what it is allowed of that now; nil is nothing, and no host call that needs a grant

	holders int // guarded by pluginSet.mu
}

// holdable compiles what a module's manifest says of its fields.
func holdable(m module, trusted bool) (*heldModule, error) {
	types, err := sentinels.NewTypeSet(specsOf(m))
	if err != nil {
		return nil, err
	}
	h := &heldModule{module: m, types: types, marks: map[sentinels.StepType]map[string]string{}, trusted: trusted}
	h.asks = Grant{Allow: asksOf(m.Manifest())}
	if trusted {
		h.grant.Store(&h.asks)
	}
	for _, t := range types.Types() {
		spec, _ := types.Lookup(t)
		marks := map[string]string{}
		for _, mark := range spec.Marks() {
			marks[mark.Path] = mark.Mark
		}
		h.marks[t] = marks
	}
	return h, nil
}

// fields returns what a step type's fields are, as this module has it: another
// version of the plugin may have others. The spec of a type that it does not
// provide is nil.
func (h *heldModule) fields(t sentinels.StepType) (*sentinels.TypeSpec, map[string]string) {
	spec, _ := h.types.Lookup(t)
	return spec, h.marks[t]
}

// specsOf is the manifest of a module in the words of package sentinels.
func specsOf(m module) []sentinels.TypeSpec {
	manifest := m.Manifest()
	specs := make([]sentinels.TypeSpec, 0, len(manifest.Steps))
	for _, t := range manifest.Steps {
		specs = append(specs, sentinels.TypeSpec{
			Type: sentinels.StepType(t.Type), Summary: t.Summary, Fields: t.Fields, Infer: t.Infer,
			Aliases: t.Aliases, Plugin: manifest.Name, Digest: m.Digest(),
		})
	}
	return specs
}

// A pluginTable is the step types that are live at one moment. It never
// changes, so that a pass that began with it ends with it.
type pluginTable struct {
	modules []*heldModule // in the order of loading: it decides inference
	byType  map[sentinels.StepType]*heldModule
	types   *sentinels.TypeSet

	swaps int // how often plugins were changed since Open
	users int // guarded by pluginSet.mu: runs in a pass, and the set while it is live
}

func emptyTable() *pluginTable {
	return &pluginTable{byType: map[sentinels.StepType]*heldModule{}, users: 1}
}

// specs returns the module's types as they were compiled when it was loaded.
func (h *heldModule) specs() []sentinels.TypeSpec {
	var specs []sentinels.TypeSpec
	for _, t := range h.types.Types() {
		spec, _ := h.types.Lookup(t)
		specs = append(specs, *spec)
	}
	return specs
}

// newTable makes a table of modules. A type that two of them have is refused, with
// every such type named. No schema is compiled for it, since the mutex that
// guards the live table is held meanwhile.
func newTable(modules []*heldModule) (*pluginTable, error) {
	t := &pluginTable{modules: modules, byType: map[sentinels.StepType]*heldModule{}, users: 1}
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
	}
	if len(taken) > 0 {
		return nil, errf(abi.Conflict, "%s", strings.Join(taken, "; "))
	}
	var err error
	t.types, err = sentinels.NewTypeSet(specs)
	return t, err
}

// with returns t and the types of more that t does not have. The result is
// not a live table and holds nothing: the caller holds t and more.
func (t *pluginTable) with(more []*heldModule) (*pluginTable, error) {
	next := &pluginTable{modules: slices.Concat(t.modules, more), byType: map[sentinels.StepType]*heldModule{}}
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

// lookup returns the module that provides a step type, for as long as the table
// is held.
func (t *pluginTable) lookup(name sentinels.StepType) (*heldModule, error) {
	if m, ok := t.byType[name]; ok {
		return m, nil
	}
	names := make([]string, 0, len(t.byType))
	for n := range t.byType {
		names = append(names, string(n))
	}
	sort.Strings(names)
	e := errf(abi.NotFound, "no plugin provides step type %q", name)
	if near := sentinels.Suggest(string(name), names); len(near) > 0 {
		e.Hint = fmt.Sprintf("did you mean %q?", near[0])
	}
	return nil, e
}
