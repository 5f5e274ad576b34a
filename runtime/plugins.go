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
	waits    map[string]waiting // by source, versions that the operator has to decide about
	asked    int                // how often all grants were asked for again
	opened   bool               // the plugins of Open are loaded
}

func newPluginSet(rt *Runtime) *pluginSet {
	return &pluginSet{rt: rt, live: emptyTable(), byDigest: map[string]*heldModule{}, waits: map[string]waiting{}}
}

// load compiles a plugin and makes its step types live. A plugin that cannot be
// loaded is recorded with the reason and is no error of the runtime, unless it
// is a trusted one: without its own step types a program is not whole.
func (s *pluginSet) load(ctx context.Context, p Plugin) error {
	s.loading.Lock()
	defer s.loading.Unlock()
	info := PluginInfo{Name: p.Name, Source: p.Name, Trusted: p.Trusted}
	err := s.install(ctx, p, &info)
	switch {
	case err == nil:
		return nil
	case p.Trusted:
		return fmt.Errorf("load plugin %q: %w", p.Name, err)
	}
	s.refused(info, err)
	return nil
}

// install opens a plugin and puts it in its place. The caller holds loading.
func (s *pluginSet) install(ctx context.Context, p Plugin, info *PluginInfo) error {
	m, err := s.open(ctx, p, info)
	if err != nil {
		return err
	}
	return s.replace(p.Replaces, m, info)
}

// open compiles a plugin and asks what it may do. Where the operator has not
// decided, the state in info is waiting, and the code is kept for the time when
// they have.
func (s *pluginSet) open(ctx context.Context, p Plugin, info *PluginInfo) (*heldModule, error) {
	code, err := p.Wasm()
	if err != nil {
		return nil, err
	}
	opt := wasm.LoadOptions{Trusted: p.Trusted}
	m, err := s.rt.wasm.Load(ctx, code, opt)
	if err != nil {
		return nil, err
	}
	info.describe(m.Digest(), m.Manifest())
	if _, err := s.rt.db.PutBlob(code); err != nil {
		m.Release()
		return nil, err
	}
	grant, err := s.ask(ctx, *info)
	if err != nil {
		m.Release()
		if abi.CodeOf(err) == abi.Denied && s.rt.opt.Grants != nil {
			info.State = PluginWaiting
		}
		return nil, err
	}
	if opt.Reuse = grant.Reuse && info.Stateless; opt.Reuse && !p.Trusted {
		// Compiled just now, so this is from the cache.
		m.Release()
		if m, err = s.rt.wasm.Load(ctx, code, opt); err != nil {
			return nil, err
		}
	}
	h, err := holdable(m, p.Trusted)
	if err != nil {
		m.Release()
		return nil, err
	}
	h.reuse = opt.Reuse
	h.allow(&grant)
	if !p.Trusted {
		info.Grant = &grant
	}
	return h, nil
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

// digests returns those of the modules in memory, and of those that wait.
func (s *pluginSet) digests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]string, 0, len(s.byDigest))
	for d := range s.byDigest {
		all = append(all, d)
	}
	for _, w := range s.waits {
		all = append(all, w.digest)
	}
	return all
}
