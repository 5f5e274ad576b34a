package runtime

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// LoadPlugin makes a plugin live, in place of the one that was loaded from the
// same source. It is compiled and checked whole before anything changes; iterations
// that have begun continue with what was live then, the next ones take the new
// one. When it is refused the old one stays, and the error as well as
// [PluginInfo] say why. A step type of another plugin is the error conflict; one
// that has to wait for the operator is the error denied, and its state says so. More
// than [Limits.Plugins] is the error limit.
//
// Several may be called at the same time: no plugin waits for another one to compile
// or to execute. Of two loads from one source the later to be ready wins.
func (rt *Runtime) LoadPlugin(ctx context.Context, p Plugin) (PluginInfo, error) {
	defer p.Prepared.Close()
	if err := rt.alive(); err != nil {
		return PluginInfo{}, err
	}
	s := rt.plugins
	module, err := s.open(ctx, p)
	s.loading.Lock()
	defer s.loading.Unlock()
	if closed := rt.alive(); closed != nil {
		if module != nil {
			unload(module.module)
		}
		return PluginInfo{}, closed
	}
	info := PluginInfo{Name: p.Name, Source: p.Name, Trusted: p.Trusted}
	if err == nil {
		err = s.install(ctx, module, p, &info)
	}
	if err != nil {
		e := *asError(err, abi.BadFields)
		e.Message = fmt.Sprintf("load plugin %q: %s", p.Name, e.Message)
		return s.refused(info, &e), &e
	}
	s.tell(info)
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
		if m.Digest() != digest || s.infos[at].State != PluginLive {
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
	delete(s.waits, source)
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
func (s *pluginSet) replace(replaces string, next *heldModule, info *PluginInfo) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	// A module that is in memory already, of an older time or the live one, is
	// taken as it is, unless its instances are to be used otherwise.
	if have := s.byDigest[next.Digest()]; have != nil && (have.reuse == next.reuse || have.trusted) {
		if !have.trusted {
			have.grant.Store(next.grant.Load())
		}
		unload(next.module)
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
	if at >= 0 && s.infos[at].State == PluginLive {
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
		if err == nil {
			err = s.checkTotals(modules)
		}
		if err != nil {
			s.discard(next)
			return err
		}
		s.swap(table)
	}
	info.State, info.Problem, info.Refused, info.Next = PluginLive, "", "", nil
	delete(s.waits, info.Source)
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
	// Held before the old ones are released, so that what is in both tables is never
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

// refused remembers why a plugin is not live, or why a newer version is not, and
// returns what it now is. A version that waits is tried again by
// [Runtime.Regrant].
func (s *pluginSet) refused(info PluginInfo, why error) PluginInfo {
	info.Problem = why.Error()
	waits := info.State == PluginWaiting
	if !waits {
		info.State, info.Types = PluginRefused, nil
	}
	s.mu.Lock()
	delete(s.waits, info.Source)
	if waits {
		s.waits[info.Source] = info
	}
	at := s.source(info.Source)
	if at >= 0 && s.infos[at].State == PluginLive {
		// What serves is still the old one, with its version and digest.
		live := &s.infos[at]
		live.Refused, live.Next = info.Problem, nil
		if waits {
			live.Next = &PluginVersion{Version: info.Version, Digest: info.Digest, Asks: info.Asks, Problem: info.Problem}
			if live.Grant != nil {
				live.Next.Missing = live.Grant.Missing(info.Asks)
			}
		}
		told := *live
		s.mu.Unlock()
		s.log(told, info, why)
		s.tell(told)
		return info
	}
	s.note(at, info)
	s.mu.Unlock()
	s.log(info, info, why)
	s.tell(info)
	return info
}

// log writes for the operator that a version of a plugin is not live. Who denied
// it knows, so a denial that is for good is no warning.
func (s *pluginSet) log(now, version PluginInfo, why error) {
	level := slog.LevelWarn
	if e := abi.As(why); version.State == PluginWaiting && e != nil && e.Permanent {
		level = slog.LevelDebug
	}
	serves := ""
	if now.Digest != version.Digest {
		serves = now.Digest
	}
	text := "plugin is not live"
	if version.State == PluginWaiting {
		text = "plugin waits for approval"
	}
	s.rt.log.Log(context.Background(), level, text, "plugin", version.Name, "file", version.Source, "digest", version.Digest, "serves", serves, "reason", version.Problem)
}

// tell reports a change of a plugin. Changes are reported one after the
// other, since the caller holds loading.
func (s *pluginSet) tell(info PluginInfo) {
	if info.Source != "" && s.rt.opt.Observer.Plugin != nil {
		s.rt.opt.Observer.Plugin(info)
	}
}

// unload frees a module that was never held.
func unload(m module) {
	if w, ok := m.(*wasm.Module); ok {
		w.Release()
	}
}
