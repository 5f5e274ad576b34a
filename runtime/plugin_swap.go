package runtime

import (
	"context"
	"fmt"
	"slices"

	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// LoadPlugin makes a plugin live, in place of the one that was loaded from the
// same source. It is compiled and checked whole before anything changes; passes
// that have begun go on with what was live then, the next ones take the new
// one. When it is refused the old one stays, and the error as well as
// [PluginInfo] say why. A step type of another plugin is the error conflict.
//
// Loads and unloads are carried out one after the other.
func (rt *Runtime) LoadPlugin(ctx context.Context, p Plugin) (PluginInfo, error) {
	s := rt.plugins
	s.loading.Lock()
	defer s.loading.Unlock()
	if err := rt.alive(); err != nil {
		return PluginInfo{}, err
	}
	// All that can fail comes first, and without the mutex: runs look types up
	// while this compiles.
	info := PluginInfo{Name: p.Name, Source: p.Name, Trusted: p.Trusted}
	m, err := s.open(ctx, p, &info)
	if err == nil {
		err = s.replace(p.Replaces, m, &info)
	}
	if err != nil {
		e := *asError(err, abi.BadFields)
		e.Message = fmt.Sprintf("load plugin %q: %s", p.Name, e.Message)
		s.refused(info, &e)
		return info, &e
	}
	return info, nil
}

// UnloadPlugin takes the plugin that was loaded from a source out: its step
// types are unknown to definitions that are read from now on and to passes that
// begin. Passes that have begun, and parked steps, end with it.
func (rt *Runtime) UnloadPlugin(_ context.Context, source string) error {
	s := rt.plugins
	s.loading.Lock()
	defer s.loading.Unlock()
	if err := rt.alive(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.source(source)
	if at < 0 {
		return errf(abi.NotFound, "unload plugin: none was loaded from %q", source)
	}
	if s.infos[at].Trusted {
		return errf(abi.Denied, "unload plugin %q: it is part of this program", source)
	}
	digest := s.infos[at].Digest
	var rest []*heldModule
	for _, m := range s.live.modules {
		if m.Digest() != digest || s.infos[at].Problem != "" {
			rest = append(rest, m)
		}
	}
	if len(rest) != len(s.live.modules) { // a refused one was never live
		table, err := newTable(rest)
		if err != nil {
			return err
		}
		s.swap(table)
	}
	s.infos = slices.Delete(s.infos, at, at+1)
	return nil
}

// alive refuses changes of a runtime that is closed: its host of guests is gone.
func (rt *Runtime) alive() error {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if rt.closed {
		return ErrClosed
	}
	return nil
}

// source returns where in infos the plugin of a source is, -1 for nowhere. The
// caller has the mutex.
func (s *pluginSet) source(name string) int {
	return slices.IndexFunc(s.infos, func(i PluginInfo) bool { return i.Source == name })
}

// replace puts m in the place of the live module of the same source, or of the
// source replaces, or beside the others. The caller holds loading.
func (s *pluginSet) replace(replaces string, m module, info *PluginInfo) error {
	next, err := holdable(m)
	if err != nil {
		unload(m)
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// A module that is in memory already, of an older time or the live one, is
	// taken as it is.
	if have := s.byDigest[m.Digest()]; have != nil {
		unload(m)
		next = have
	}
	at := s.source(info.Source)
	if at < 0 && replaces != "" {
		at = s.source(replaces)
	}
	// The new module takes the old one's place in the order, which decides which
	// type a step without one is of.
	modules := slices.Clone(s.live.modules)
	place := -1
	if at >= 0 && s.infos[at].Problem == "" {
		if s.infos[at].Trusted && !info.Trusted {
			s.discard(next)
			return errf(abi.Denied, "plugin %q is part of this program", s.infos[at].Name)
		}
		digest := s.infos[at].Digest
		place = slices.IndexFunc(modules, func(h *heldModule) bool { return h.Digest() == digest })
	}
	for i, other := range modules {
		if i != place && other.Digest() == next.Digest() {
			s.discard(next)
			return errf(abi.Conflict, "the same plugin is live from another file")
		}
	}
	switch {
	case place < 0:
		modules = append(modules, next)
	case modules[place] == next:
		modules = nil // nothing changes but what is known of it
	default:
		modules[place] = next
	}
	if modules != nil {
		table, err := newTable(modules)
		if err != nil {
			s.discard(next)
			return err
		}
		s.swap(table)
	}
	info.Types = nil
	for _, t := range m.Manifest().Steps {
		info.Types = append(info.Types, sentinels.StepType(t.Type))
	}
	s.note(at, *info)
	return nil
}

// discard counts a holder and gives it back, so that a module that is not wanted
// is kept or unloaded like any other. The caller has the mutex.
func (s *pluginSet) discard(m *heldModule) {
	s.hold(m)
	s.release(m)
}

// swap makes a table the live one. The caller has the mutex.
func (s *pluginSet) swap(table *pluginTable) {
	// Held before the old ones are let go, so that what is in both tables is never
	// without a holder.
	for _, m := range table.modules {
		s.hold(m)
	}
	old := s.live
	table.swaps = old.swaps
	if s.opened {
		table.swaps++
	}
	s.live = table
	if old.users--; old.users == 0 {
		for _, m := range old.modules {
			s.release(m)
		}
	}
}

// note remembers what is known of a plugin at a place in infos, or as the last.
// Modules of tests have no source and are not listed.
func (s *pluginSet) note(at int, info PluginInfo) {
	switch {
	case info.Source == "":
	case at >= 0:
		s.infos[at] = info
	default:
		s.infos = append(s.infos, info)
	}
}

// refused remembers why a plugin is not live, or why a newer version is not.
func (s *pluginSet) refused(info PluginInfo, why error) {
	s.mu.Lock()
	at := s.source(info.Source)
	if at >= 0 && s.infos[at].Problem == "" {
		s.infos[at].Refused = why.Error() // what serves is still the old one, with its version and digest
	} else {
		info.Problem, info.Types = why.Error(), nil
		s.note(at, info)
	}
	s.mu.Unlock()
	s.rt.log.Warn("plugin is not live", "plugin", info.Source, "reason", why)
}

// unload frees a module that was never held.
func unload(m module) {
	if w, ok := m.(*wasm.Module); ok {
		w.Release()
	}
}
