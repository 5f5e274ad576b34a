package runtime

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// keepIdle bounds the compiled code of old versions, some megabytes each for
// guests in Go: it is how many modules without a user stay compiled: runs that go on
// one after the other on the same old version load it once.
const keepIdle = 4

// use holds the live table, and with it every module in it.
func (s *pluginSet) use() *pluginTable {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live.users++
	return s.live
}

// done releases a table; the last one releases its modules.
func (s *pluginSet) done(t *pluginTable) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.users--; t.users == 0 {
		for _, m := range t.modules {
			s.release(m)
		}
	}
}

// hold counts a holder of m more. The caller has the mutex.
func (s *pluginSet) hold(m *heldModule) {
	if m.holders == 0 {
		s.idle = slices.DeleteFunc(s.idle, func(i *heldModule) bool { return i == m })
	}
	if m.holders++; m.holders == 1 || s.byDigest[m.Digest()] == nil {
		s.byDigest[m.Digest()] = m
	}
}

// release counts a holder less. The caller has the mutex.
func (s *pluginSet) release(m *heldModule) {
	if m.holders--; m.holders > 0 {
		return
	}
	s.idle = append(s.idle, m)
	for len(s.idle) > keepIdle {
		old := s.idle[0]
		s.idle = s.idle[1:]
		if s.byDigest[old.Digest()] == old { // else another one has its place
			delete(s.byDigest, old.Digest())
		}
		if w, ok := old.module.(*wasm.Module); ok {
			w.Release()
		}
	}
}

// digest holds the module that an earlier attempt started with, from memory or
// from its blob.
func (s *pluginSet) digest(ctx context.Context, digest string) (*heldModule, error) {
	s.mu.Lock()
	if m, ok := s.byDigest[digest]; ok {
		s.hold(m)
		s.mu.Unlock()
		return m, nil
	}
	s.mu.Unlock()
	code, err := s.rt.db.Blob(digest)
	if err != nil {
		return nil, errf(abi.NotFound, "the plugin with digest %.12s, which this step started with, is gone: %v", digest, err)
	}
	// Compiled without the mutex, since that may take a second. Two that ask for the
	// same one compile it twice, the second from the cache, and one is dropped.
	//
	// One that was trusted when it was live here is so again; any other one is
	// asked about, and goes on without what it is not allowed any more.
	trusted := s.wasTrusted(digest)
	loaded, err := s.rt.wasm.Load(ctx, code, wasm.LoadOptions{Trusted: trusted})
	if err != nil {
		return nil, err
	}
	m, err := holdable(loaded, trusted)
	if err != nil {
		loaded.Release()
		return nil, err
	}
	for {
		s.mu.Lock()
		asked := s.asked
		s.mu.Unlock()
		s.renew(ctx, m)
		s.mu.Lock()
		if asked == s.asked {
			break
		}
		s.mu.Unlock() // the grants have changed meanwhile
	}
	defer s.mu.Unlock()
	if other, ok := s.byDigest[digest]; ok { // another goroutine was faster
		loaded.Release()
		m = other
	}
	s.hold(m)
	return m, nil
}

// A pluginView is the plugins as one pass of a run sees them: the table that was
// live when the pass began, and old modules that its parked steps go on with. It
// ends with the pass.
type pluginView struct {
	set   *pluginSet
	table *pluginTable // held
	types *pluginTable // table, and the types of parked steps that it does not have

	mu   sync.Mutex
	past map[string]*heldModule // by digest, each held
}

// view begins the view of a pass. It must be ended.
func (s *pluginSet) view() *pluginView {
	t := s.use()
	return &pluginView{set: s, table: t, types: t}
}

// pastView is the view of a pass that a crash interrupted: the step types that
// its unfinished steps began with are there, even if their plugin has been
// removed meanwhile. A module that cannot be had is left out; the step that asks
// for it says why.
func (s *pluginSet) pastView(ctx context.Context, open history.Executions) *pluginView {
	v := s.view()
	var more []*heldModule
	for _, e := range open {
		a := e.Attempts[e.Last]
		if e.End != nil || a == nil || a.Start == nil || v.table.byType[a.Start.Type] != nil {
			continue
		}
		if m, err := v.digest(ctx, a.Start.Module); err == nil && !slices.Contains(more, m) {
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

// lookup returns the module that executes a new step of the iteration.
func (v *pluginView) lookup(t sentinels.StepType) (*heldModule, error) {
	m, err := v.types.lookup(t)
	if err != nil {
		if e := v.set.absent(t); e != nil {
			return nil, e
		}
	}
	return m, err
}

// digest returns a module for as long as the view is there.
func (v *pluginView) digest(ctx context.Context, digest string) (*heldModule, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if m, ok := v.past[digest]; ok {
		return m, nil
	}
	m, err := v.set.digest(ctx, digest)
	if err != nil {
		return nil, err
	}
	if v.past == nil {
		v.past = map[string]*heldModule{}
	}
	v.past[digest] = m
	return m, nil
}

// end releases everything. A nil view has nothing.
func (v *pluginView) end() {
	if v == nil {
		return
	}
	v.set.done(v.table)
	v.set.mu.Lock()
	defer v.set.mu.Unlock()
	for _, m := range v.past {
		v.set.release(m)
	}
	v.past = nil
}

// setPlugins makes v what the run's steps see, nil at the end of a pass, and
// ends the view before it. No step of the run is executed meanwhile.
func (r *run) setPlugins(v *pluginView) {
	r.mu.Lock()
	before := r.view
	r.view = v
	r.mu.Unlock()
	before.end()
}

// reread returns a definition as the step types of a pass read it: where a
// plugin was swapped, a field may hold steps now that was plain data before. One
// that they cannot read stays as it is; the step that is concerned says why.
func (r *run) reread(def *sentinels.Definition, v *pluginView) *sentinels.Definition {
	r.mu.Lock()
	before := r.types
	r.types = v.table.types
	r.mu.Unlock()
	if v.table.swaps == 0 || before == v.table.types {
		return def // what nearly every pass of nearly every run comes to
	}
	text, err := json.Marshal(def)
	if err != nil {
		return def
	}
	opt := r.rt.decodeOptions(string(def.ID))
	opt.Types = v.table.types
	again, _, err := r.rt.decodeStoredWith(text, opt)
	if err != nil {
		r.rt.log.Warn("definition cannot be read with the plugins that are live now", "run", r.id, "error", err)
		return def
	}
	return again
}

// plugins returns what the steps of the current pass see.
func (r *run) plugins() *pluginView {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.view
}
