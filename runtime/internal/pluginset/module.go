package pluginset

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Loaded is a loaded plugin, which executes step attempts: a [*wasm.Module], or in
// tests of the engine a Go function.
type Loaded interface {
	Digest() string
	Manifest() wasm.Manifest
	Bytes() []byte
	Run(ctx context.Context, inv wasm.Invocation) (wasm.Result, error)
	Validate(ctx context.Context, stepType string, fields json.RawMessage) ([]wasm.Problem, error)
}

// A Module is a loaded plugin with what its manifest says of its types, what it may
// do, and how many may call it.
type Module struct {
	Loaded
	types *sentinels.TypeSet                       // its own alone
	marks map[sentinels.StepType]map[string]string // by field, of those that are more than plain data

	trusted     bool
	reuse       bool                         // its instances serve several calls
	permissions plugin.Grant                 // all that it asks for
	grant       atomic.Pointer[plugin.Grant] // what it is allowed of that now; nil is nothing, and no host call that needs a grant

	holders int // guarded by Set.mu
}

// newModule compiles what a module's manifest says of its fields.
func newModule(l Loaded, trusted bool) (*Module, error) {
	types, err := typesOf(l)
	if err != nil {
		return nil, err
	}
	m := &Module{Loaded: l, types: types, marks: map[sentinels.StepType]map[string]string{}, trusted: trusted}
	m.permissions = plugin.Grant{Allow: permissionsOf(l.Manifest())}
	if trusted {
		m.grant.Store(&m.permissions)
	}
	for _, t := range types.Types() {
		spec, _ := types.Lookup(t)
		marks := map[string]string{}
		for _, mark := range spec.Marks() {
			marks[mark.Path] = mark.Mark
		}
		m.marks[t] = marks
	}
	return m, nil
}

// knownTypes has the step types of modules that are part of the program, a *sentinels.TypeSet by
// digest: all sets of a process compile them once.
var knownTypes sync.Map

// typesOf compiles the step types of a module.
func typesOf(l Loaded) (*sentinels.TypeSet, error) {
	w, ok := l.(*wasm.Module)
	if !ok || !w.Deferred() {
		return sentinels.NewTypeSet(specsOf(l))
	}
	if types, ok := knownTypes.Load(l.Digest()); ok {
		return types.(*sentinels.TypeSet), nil
	}
	specs := specsOf(l)
	for i := range specs {
		specs[i].Known = true
	}
	types, err := sentinels.NewTypeSet(specs)
	if err == nil {
		knownTypes.Store(l.Digest(), types)
	}
	return types, err
}

// Fields returns what a step type's fields are, as this module has it: another
// version of the plugin may have others. The spec of a type that it does not
// provide is nil.
func (m *Module) Fields(t sentinels.StepType) (*sentinels.TypeSpec, map[string]string) {
	spec, _ := m.types.Lookup(t)
	return spec, m.marks[t]
}

// specsOf is the manifest of a module in the words of package sentinels.
func specsOf(l Loaded) []sentinels.TypeSpec {
	specs := l.Manifest().Types()
	for i := range specs {
		specs[i].Digest = l.Digest()
	}
	return specs
}

// specs returns the module's types as they were compiled when it was loaded.
func (m *Module) specs() []sentinels.TypeSpec {
	var specs []sentinels.TypeSpec
	for _, t := range m.types.Types() {
		spec, _ := m.types.Lookup(t)
		specs = append(specs, *spec)
	}
	return specs
}

// Trusted reports whether the module ships with the program: it may do all that it
// asks for.
func (m *Module) Trusted() bool { return m.trusted }

// Ready loads the code of the module if that waits for its first use.
func (m *Module) Ready(ctx context.Context) error {
	if w, ok := m.Loaded.(*wasm.Module); ok {
		return w.Ready(ctx)
	}
	return nil
}

// Seed returns the seed of an instance that was made ahead; ok is false if none is
// ready. The attempt takes that seed, and its journal keeps it like any other.
func (m *Module) Seed() (seed uint64, ok bool) {
	if s, can := m.Loaded.(interface{ Seed() (uint64, bool) }); can {
		return s.Seed()
	}
	return 0, false
}

// describe fills in what a manifest says.
func describe(i *plugin.Info, digest string, manifest wasm.Manifest) {
	i.Name, i.Version, i.Digest, i.Stateless = manifest.Name, manifest.Version, digest, manifest.Stateless
	i.Permissions, i.Types, i.Roles = permissionsOf(manifest), nil, nil
	for _, t := range manifest.Steps {
		i.Types = append(i.Types, sentinels.StepType(t.Type))
		if p := t.Provides; p != nil {
			i.Roles = append(i.Roles, plugin.Role{As: p.As, Name: p.Name, Type: sentinels.StepType(t.Type)})
		}
	}
}

// permissionsOf is what a manifest asks for.
func permissionsOf(manifest wasm.Manifest) []plugin.Permission {
	var permissions []plugin.Permission
	for _, a := range manifest.Permissions {
		permissions = append(permissions, plugin.Permission{Use: a.Use, Names: slices.Clone(a.Names), Reason: a.Reason})
	}
	return permissions
}

// allow sets what a module may do from now on: of what the operator says,
// the uses that it asks for. nil is nothing. A trusted one has all it asks for.
func (m *Module) allow(g *plugin.Grant) {
	if m.trusted {
		return
	}
	if g != nil {
		own := *g
		own.Allow = slices.DeleteFunc(slices.Clone(g.Allow), func(a plugin.Permission) bool {
			_, asked := m.permissions.Names(abi.Use(a.Use))
			return !asked
		})
		g = &own
	}
	m.grant.Store(g)
}

// Allowed returns what the module may do now; ok is false if that is nothing,
// because the operator took it back.
func (m *Module) Allowed() (g plugin.Grant, ok bool) {
	if p := m.grant.Load(); p != nil {
		return *p, true
	}
	return plugin.Grant{}, false
}

// AllowsRequested reports whether a name is both asked for and allowed.
func (m *Module) AllowsRequested(use abi.Use, name string) bool {
	grant, ok := m.Allowed()
	return ok && grant.Allows(use, name) && m.permissions.Allows(use, name)
}

// Requested returns the names that the module asks for of a use, see
// [plugin.Grant.Names].
func (m *Module) Requested(use abi.Use) (names []string, ok bool) { return m.permissions.Names(use) }

// Refusal is the error of what a module may not do, with the way to change that.
func (m *Module) Refusal(format string, args ...any) *abi.Error {
	return &abi.Error{Code: abi.Denied, Permanent: true, Message: fmt.Sprintf(format, args...),
		Hint: "sentinel plugin allow " + m.Manifest().Name}
}

// unload frees a module that was never held.
func unload(l Loaded) {
	if w, ok := l.(*wasm.Module); ok {
		w.Release()
	}
}
