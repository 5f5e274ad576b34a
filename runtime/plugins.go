package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"sync"

	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A module carries out step attempts. It is a loaded plugin; engine tests put
// Go functions here.
type module interface {
	Digest() string
	Manifest() wasm.Manifest
	Bytes() []byte
	Run(ctx context.Context, inv wasm.Invocation) (wasm.Result, error)
	Validate(ctx context.Context, stepType string, fields json.RawMessage) ([]wasm.Problem, error)
}

// pluginSet is the step types of one runtime and the modules behind them.
//
// # Concurrency
//
// Safe for concurrent use. A module stays loaded until the runtime closes: what
// is parked replays on the digest it started with.
type pluginSet struct {
	rt *Runtime

	mu       sync.Mutex
	byType   map[sentinels.StepType]module
	byDigest map[string]module
	infos    []PluginInfo
	types    *sentinels.TypeSet
	marks    map[sentinels.StepType]map[string]string
}

// PluginInfo describes a loaded plugin or says why it is not.
type PluginInfo struct {
	Name    string               `json:"name"`
	Version string               `json:"version,omitempty"`
	Source  string               `json:"source"`
	Digest  string               `json:"digest,omitempty"`
	Types   []sentinels.StepType `json:"types,omitempty"`
	Trusted bool                 `json:"trusted"`
	Asks    []PluginAsk          `json:"asks,omitempty"`
	Problem string               `json:"problem,omitempty"` // why it is not live
}

// PluginAsk is one permission a plugin asks for, with its reason.
type PluginAsk struct {
	Use    string   `json:"use"`
	Names  []string `json:"names,omitempty"`
	Reason string   `json:"reason"`
}

func newPluginSet(rt *Runtime) *pluginSet {
	return &pluginSet{
		rt:       rt,
		byType:   map[sentinels.StepType]module{},
		byDigest: map[string]module{},
		marks:    map[sentinels.StepType]map[string]string{},
	}
}

// load compiles a plugin and makes its step types live. A plugin that cannot be
// loaded is recorded with the reason and is no error of the runtime, unless it
// is a trusted one: without its own step types a program is not whole.
func (s *pluginSet) load(ctx context.Context, p Plugin) error {
	info := PluginInfo{Name: p.Name, Source: p.Name, Trusted: p.Trusted}
	m, err := s.open(ctx, p, &info)
	if err == nil {
		err = s.add(m, &info)
	}
	if err != nil {
		info.Problem = err.Error()
	}
	s.mu.Lock()
	s.infos = append(s.infos, info)
	s.mu.Unlock()
	if err != nil && p.Trusted {
		return fmt.Errorf("load plugin %q: %w", p.Name, err)
	}
	if err != nil {
		s.rt.log.Warn("plugin is not live", "plugin", p.Name, "reason", err)
	}
	return nil
}

func (s *pluginSet) open(ctx context.Context, p Plugin, info *PluginInfo) (module, error) {
	code, err := p.Wasm()
	if err != nil {
		return nil, err
	}
	m, err := s.rt.wasm.Load(ctx, code, wasm.LoadOptions{Trusted: p.Trusted})
	if err != nil {
		return nil, err
	}
	manifest := m.Manifest()
	info.Name, info.Version, info.Digest = manifest.Name, manifest.Version, m.Digest()
	for _, a := range manifest.Asks {
		info.Asks = append(info.Asks, PluginAsk{Use: a.Use, Names: a.Names, Reason: a.Reason})
	}
	if !p.Trusted && len(manifest.Asks) > 0 {
		return nil, &abi.Error{Code: abi.Denied, Message: fmt.Sprintf("plugin %q asks for permissions, and this program grants none to plugins of others", manifest.Name),
			Hint: "use a plugin that asks for nothing"}
	}
	if _, err := s.rt.db.PutBlob(code); err != nil {
		return nil, err
	}
	return m, nil
}

// add makes m's step types live; a type that another plugin has is refused.
func (s *pluginSet) add(m module, info *PluginInfo) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	manifest := m.Manifest()
	for _, t := range manifest.Steps {
		if other, ok := s.byType[sentinels.StepType(t.Type)]; ok {
			return errf(abi.Conflict, "step type %q is already provided by plugin %q", t.Type, other.Manifest().Name)
		}
	}
	byType := s.byType
	next := map[sentinels.StepType]module{}
	for t, mod := range byType {
		next[t] = mod
	}
	for _, t := range manifest.Steps {
		next[sentinels.StepType(t.Type)] = m
		info.Types = append(info.Types, sentinels.StepType(t.Type))
	}
	specs := s.specs(m)
	types, err := sentinels.NewTypeSet(specs)
	if err != nil {
		return err
	}
	s.byType, s.types = next, types
	s.byDigest[m.Digest()] = m
	for _, t := range manifest.Steps {
		name := sentinels.StepType(t.Type)
		spec, _ := types.Lookup(name)
		marks := map[string]string{}
		for _, mark := range spec.Marks() {
			marks[mark.Path] = mark.Mark
		}
		s.marks[name] = marks
	}
	return nil
}

// specs returns the specs of all live types followed by those of m, built-in
// order first: it decides inference.
func (s *pluginSet) specs(m module) []sentinels.TypeSpec {
	var specs []sentinels.TypeSpec
	if s.types != nil {
		for _, t := range s.types.Types() {
			spec, _ := s.types.Lookup(t)
			specs = append(specs, *spec)
		}
	}
	manifest := m.Manifest()
	for _, t := range manifest.Steps {
		specs = append(specs, sentinels.TypeSpec{
			Type: sentinels.StepType(t.Type), Summary: t.Summary, Fields: t.Fields, Infer: t.Infer,
			Aliases: t.Aliases, Plugin: manifest.Name, Digest: m.Digest(),
		})
	}
	return specs
}

func (s *pluginSet) lookup(t sentinels.StepType) (module, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m, ok := s.byType[t]; ok {
		return m, nil
	}
	names := make([]string, 0, len(s.byType))
	for t := range s.byType {
		names = append(names, string(t))
	}
	sort.Strings(names)
	e := errf(abi.NotFound, "no plugin provides step type %q", t)
	if near := sentinels.Suggest(string(t), names); len(near) > 0 {
		e.Hint = fmt.Sprintf("did you mean %q?", near[0])
	}
	return nil, e
}

// digest returns the module that an earlier attempt started with, from memory
// or from its blob.
func (s *pluginSet) digest(ctx context.Context, digest string) (module, error) {
	s.mu.Lock()
	m, ok := s.byDigest[digest]
	s.mu.Unlock()
	if ok {
		return m, nil
	}
	code, err := s.rt.db.Blob(digest)
	if err != nil {
		return nil, errf(abi.NotFound, "the plugin with digest %.12s, which this step started with, is gone: %v", digest, err)
	}
	// An old module has at most what built-ins have: it was live here before.
	loaded, err := s.rt.wasm.Load(ctx, code, wasm.LoadOptions{Trusted: s.wasTrusted(digest)})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if m, ok := s.byDigest[digest]; ok {
		return m, nil
	}
	s.byDigest[digest] = loaded
	return loaded, nil
}

// wasTrusted reports whether a digest was loaded as trusted by any release: the
// store remembers the digests of built-in modules.
func (s *pluginSet) wasTrusted(digest string) bool {
	_, ok, err := s.rt.db.Get(bucketTrusted, []byte(digest))
	return ok && err == nil
}

func (s *pluginSet) typeSet() *sentinels.TypeSet {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.types
}

// fields returns what a step type's fields are, and the marks of those that
// are more than plain data.
func (s *pluginSet) fields(t sentinels.StepType) (*sentinels.TypeSpec, map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	spec, _ := s.types.Lookup(t)
	return spec, s.marks[t]
}

// Plugins returns the plugins that were loaded or tried, in that order.
func (rt *Runtime) Plugins() []PluginInfo {
	rt.plugins.mu.Lock()
	defer rt.plugins.mu.Unlock()
	return append([]PluginInfo(nil), rt.plugins.infos...)
}
