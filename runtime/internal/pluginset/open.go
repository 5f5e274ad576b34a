package pluginset

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// openers is how many plugins are read at a time when a runtime opens; how many
// compile and execute at a time is bounded by the guest host.
const openers = 8

// prepared is a module that is compiled, described and checked, and not live yet.
type prepared struct {
	mu     sync.Mutex
	module *Module // nil once taken
}

// take returns the module if p is one of this code, once.
func take(p plugin.Prepared, code []byte) *Module {
	ready, ok := p.(*prepared)
	if !ok {
		return nil
	}
	ready.mu.Lock()
	defer ready.mu.Unlock()
	m := ready.module
	if m == nil || !bytes.Equal(code, m.Bytes()) {
		return nil
	}
	ready.module = nil
	return m
}

// Close frees a module that was not loaded. It may be called more than once.
func (p *prepared) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.module != nil {
		unload(p.module.Loaded)
		p.module = nil
	}
}

// Prepare does of a [Set.Load] all that executes or compiles what others wrote, side
// by side with other plugins. The error is why Load would refuse the module.
func (s *Set) Prepare(ctx context.Context, code []byte) (plugin.Prepared, error) {
	if err := s.opt.Alive(); err != nil {
		return nil, err
	}
	m, err := s.openCode(ctx, code, false)
	if err != nil {
		return nil, err
	}
	return &prepared{module: m}, nil
}

// LoadAll makes the plugins with which the engine begins live, in their order. A
// plugin that cannot be loaded is recorded with the reason. That is an error of the
// runtime only for a trusted one: without its own step types a program is not whole.
func (s *Set) LoadAll(ctx context.Context, list []plugin.Source) error {
	ready := s.openAll(ctx, list)
	s.loading.Lock()
	defer s.loading.Unlock()
	for i, p := range list {
		one := <-ready[i]
		info := plugin.Info{Name: p.Name, Source: p.Name, Trusted: p.Trusted}
		if one.err == nil {
			one.err = s.install(ctx, one.module, p, &info)
		}
		switch {
		case one.err == nil:
		case p.Trusted:
			return fmt.Errorf("load plugin %q: %w", p.Name, one.err)
		default:
			s.refused(info, one.err)
		}
	}
	s.opened.Store(true)
	return nil
}

// An opening is what came of opening one plugin.
type opening struct {
	module *Module
	err    error
}

// openAll opens plugins side by side and returns where each comes out. What is not
// received is freed when the guest host closes.
func (s *Set) openAll(ctx context.Context, list []plugin.Source) []chan opening {
	ready := make([]chan opening, len(list))
	free := make(chan struct{}, openers)
	others := 0
	for i, p := range list {
		ready[i] = make(chan opening, 1)
		if !p.Trusted {
			others++
			if err := s.CheckTotals(others, 0); err != nil {
				ready[i] <- opening{err: err}
				continue
			}
		}
		go func() {
			free <- struct{}{}
			defer func() { <-free }()
			m, err := s.open(ctx, p)
			ready[i] <- opening{m, err}
		}()
	}
	return ready
}

// open compiles a plugin and executes its describe. It needs no lock.
func (s *Set) open(ctx context.Context, p plugin.Source) (*Module, error) {
	if p.Trusted && p.Manifest != nil {
		return s.openDeferred(p)
	}
	code, err := p.Wasm()
	if err != nil {
		return nil, err
	}
	if m := take(p.Prepared, code); m != nil && !p.Trusted {
		return m, nil
	}
	return s.openCode(ctx, code, p.Trusted)
}

func (s *Set) openCode(ctx context.Context, code []byte, trusted bool) (*Module, error) {
	opt := wasm.LoadOptions{Trusted: trusted}
	if !trusted {
		opt.Allow = s.checkManifest
	}
	m, err := s.opt.Host.Load(ctx, code, opt)
	if err != nil {
		return nil, err
	}
	return openModule(m, trusted)
}

// openDeferred opens a plugin whose module is loaded when it is first used. Its code is kept in
// the store behind that, before the first step is recorded that has its digest.
func (s *Set) openDeferred(p plugin.Source) (*Module, error) {
	digest, manifest := p.Manifest()
	m, err := s.opt.Host.Defer(wasm.Deferred{Digest: digest, Manifest: manifest, Wasm: p.Wasm, Loaded: s.keep})
	if err != nil {
		return nil, err
	}
	return openModule(m, true)
}

// openModule compiles what the manifest of a loaded module says, and releases the module if that
// fails.
func openModule(m *wasm.Module, trusted bool) (*Module, error) {
	h, err := newModule(m, trusted)
	if err != nil {
		m.Release()
		return nil, err
	}
	return h, nil
}

// install asks what a module may do and puts it in its place. Where the operator has
// not decided, the state in info is waiting, and the code is kept for the time when
// they have. The caller holds loading; the module is the set's or freed afterwards.
func (s *Set) install(ctx context.Context, h *Module, p plugin.Source, info *plugin.Info) error {
	describe(info, h.Digest(), h.Manifest())
	grant, err := s.admit(ctx, h, info)
	if err != nil {
		unload(h.Loaded)
		return err
	}
	if h.reuse = grant.Reuse && info.Stateless; h.reuse && !h.trusted {
		if w, ok := h.Loaded.(*wasm.Module); ok {
			w.Reuse()
		}
	}
	h.allow(&grant)
	if !h.trusted {
		info.Grant = &grant
	}
	return s.replace(p.Replaces, h, info)
}

// admit keeps a module's code and asks what it may do.
func (s *Set) admit(ctx context.Context, h *Module, info *plugin.Info) (plugin.Grant, error) {
	if err := s.checkName(info); err != nil {
		return plugin.Grant{}, err
	}
	if code := h.Bytes(); code != nil { // nil: it is loaded later, see openDeferred
		if err := s.keep(h.Digest(), code); err != nil {
			return plugin.Grant{}, err
		}
	}
	grant, err := s.ask(ctx, *info)
	if abi.CodeOf(err) == abi.Denied && s.opt.Grants != nil {
		info.State = plugin.Waiting
	}
	return grant, err
}
