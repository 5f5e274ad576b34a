package runtime

import (
	"context"
	"encoding/json"
	"fmt"
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
// Safe for concurrent use. What is live is one immutable [pluginTable]; a swap
// puts another in its place. Who works with a table or a module holds it, and
// modules that nobody holds any more are unloaded but for the last few: their
// code is in the store, should a parked step ask for it.
type pluginSet struct {
	rt      *Runtime
	loading sync.Mutex // held while the live plugins change

	mu       sync.Mutex
	live     *pluginTable
	byDigest map[string]*heldModule // every module in memory
	idle     []*heldModule          // those that nobody holds, the oldest first
	infos    []PluginInfo
	opened   bool // the plugins of Open are loaded
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
	Refused string               `json:"refused,omitempty"` // it is live, and this is why a newer version of it is not
}

// PluginAsk is one permission a plugin asks for, with its reason.
type PluginAsk struct {
	Use    string   `json:"use"`
	Names  []string `json:"names,omitempty"`
	Reason string   `json:"reason"`
}

func newPluginSet(rt *Runtime) *pluginSet {
	return &pluginSet{rt: rt, live: emptyTable(), byDigest: map[string]*heldModule{}}
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
	switch {
	case err == nil:
		return nil
	case p.Trusted:
		return fmt.Errorf("load plugin %q: %w", p.Name, err)
	}
	s.refused(info, err)
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
	info.Asks = asksOf(manifest)
	if !p.Trusted && len(manifest.Asks) > 0 {
		return nil, &abi.Error{Code: abi.Denied, Message: fmt.Sprintf("plugin %q asks for permissions, and this program grants none to plugins of others", manifest.Name),
			Hint: "use a plugin that asks for nothing"}
	}
	if _, err := s.rt.db.PutBlob(code); err != nil {
		return nil, err
	}
	return m, nil
}

// asksOf is what a manifest asks for.
func asksOf(manifest wasm.Manifest) []PluginAsk {
	var asks []PluginAsk
	for _, a := range manifest.Asks {
		asks = append(asks, PluginAsk{Use: a.Use, Names: a.Names, Reason: a.Reason})
	}
	return asks
}

// add makes m's step types live beside those that are.
func (s *pluginSet) add(m module, info *PluginInfo) error {
	s.loading.Lock()
	defer s.loading.Unlock()
	return s.replace("", m, info)
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
	return s.live.types
}

// Plugins returns the plugins that were loaded or tried, in that order.
func (rt *Runtime) Plugins() []PluginInfo {
	rt.plugins.mu.Lock()
	defer rt.plugins.mu.Unlock()
	return append([]PluginInfo(nil), rt.plugins.infos...)
}

// digests returns those of the modules in memory.
func (s *pluginSet) digests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]string, 0, len(s.byDigest))
	for d := range s.byDigest {
		all = append(all, d)
	}
	return all
}
