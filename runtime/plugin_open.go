package runtime

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// openers is how many plugins are read at a time when a runtime opens; how many
// compile and execute at a time is bounded by the guest host.
const openers = 8

// A PreparedPlugin is a module that is compiled, described and checked, and not live
// yet. It holds memory until it is loaded or closed.
type PreparedPlugin struct {
	mu     sync.Mutex
	module *heldModule // nil once taken
}

// take returns the module if it is of this code, once.
func (p *PreparedPlugin) take(code []byte) *heldModule {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.module
	if m == nil || !bytes.Equal(code, m.Bytes()) {
		return nil
	}
	p.module = nil
	return m
}

// Close frees a module that was not loaded. It may be called more than once, also on
// nil.
func (p *PreparedPlugin) Close() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.module != nil {
		unload(p.module.module)
		p.module = nil
	}
}

// PreparePlugin does of a [Runtime.LoadPlugin] all that executes or compiles what
// others wrote, side by side with other plugins. The error is why LoadPlugin would
// refuse the module. The caller gives the result to LoadPlugin in
// [Plugin.Prepared], or closes it.
func (rt *Runtime) PreparePlugin(ctx context.Context, module []byte) (*PreparedPlugin, error) {
	if err := rt.alive(); err != nil {
		return nil, err
	}
	m, err := rt.plugins.openCode(ctx, module, false)
	if err != nil {
		return nil, err
	}
	return &PreparedPlugin{module: m}, nil
}

// loadAll makes the plugins of Options live, in their order. A plugin that cannot be
// loaded is recorded with the reason, which is not an error of the runtime unless it is a
// trusted one: without its own step types a program is not whole.
func (s *pluginSet) loadAll(ctx context.Context, list []Plugin) error {
	ready := s.openAll(ctx, list)
	s.loading.Lock()
	defer s.loading.Unlock()
	for i, p := range list {
		one := <-ready[i]
		info := PluginInfo{Name: p.Name, Source: p.Name, Trusted: p.Trusted}
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
	return nil
}

// An opening is what came of opening one plugin.
type opening struct {
	module *heldModule
	err    error
}

// openAll opens plugins side by side and returns where each comes out. What is not
// received is freed when the guest host closes.
func (s *pluginSet) openAll(ctx context.Context, list []Plugin) []chan opening {
	ready := make([]chan opening, len(list))
	free := make(chan struct{}, openers)
	others := 0
	for i, p := range list {
		ready[i] = make(chan opening, 1)
		if !p.Trusted {
			others++
			if err := s.rt.CheckPluginTotals(others, 0); err != nil {
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
func (s *pluginSet) open(ctx context.Context, p Plugin) (*heldModule, error) {
	code, err := p.Wasm()
	if err != nil {
		return nil, err
	}
	if m := p.Prepared.take(code); m != nil && !p.Trusted {
		return m, nil
	}
	return s.openCode(ctx, code, p.Trusted)
}

func (s *pluginSet) openCode(ctx context.Context, code []byte, trusted bool) (*heldModule, error) {
	opt := wasm.LoadOptions{Trusted: trusted}
	if !trusted {
		opt.Allow = s.checkManifest
	}
	m, err := s.rt.wasm.Load(ctx, code, opt)
	if err != nil {
		return nil, err
	}
	h, err := holdable(m, trusted)
	if err != nil {
		m.Release()
		return nil, err
	}
	return h, nil
}

// install asks what a module may do and puts it in its place. Where the operator has
// not decided, the state in info is waiting, and the code is kept for the time when
// they have. The caller holds loading; the module is the set's or freed afterwards.
func (s *pluginSet) install(ctx context.Context, h *heldModule, p Plugin, info *PluginInfo) error {
	info.describe(h.Digest(), h.Manifest())
	grant, err := s.admit(ctx, h, info)
	if err != nil {
		unload(h.module)
		return err
	}
	if h.reuse = grant.Reuse && info.Stateless; h.reuse && !h.trusted {
		if w, ok := h.module.(*wasm.Module); ok {
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
func (s *pluginSet) admit(ctx context.Context, h *heldModule, info *PluginInfo) (Grant, error) {
	if err := s.checkName(info); err != nil {
		return Grant{}, err
	}
	if err := s.keep(h.Digest(), h.Bytes()); err != nil {
		return Grant{}, err
	}
	grant, err := s.ask(ctx, *info)
	if abi.CodeOf(err) == abi.Denied && s.rt.opt.Grants != nil {
		info.State = PluginWaiting
	}
	return grant, err
}
