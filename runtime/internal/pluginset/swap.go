package pluginset

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Load makes a plugin live, in place of the one that was loaded from the same
// source. It is compiled and checked whole before anything changes. When it is
// refused the old one stays, and the error and the returned Info have the reason.
func (s *Set) Load(ctx context.Context, p plugin.Source) (plugin.Info, error) {
	if p.Prepared != nil {
		defer p.Prepared.Close()
	}
	if err := s.opt.Alive(); err != nil {
		return plugin.Info{}, err
	}
	module, err := s.open(ctx, p)
	s.loading.Lock()
	defer s.loading.Unlock()
	if closed := s.opt.Alive(); closed != nil {
		if module != nil {
			unload(module.Loaded)
		}
		return plugin.Info{}, closed
	}
	info := plugin.Info{Name: p.Name, Source: p.Name, Trusted: p.Trusted}
	if err == nil {
		err = s.install(ctx, module, p, &info)
	}
	if err != nil {
		e := abi.Error{Code: abi.BadFields, Message: err.Error()}
		if coded := abi.As(err); coded != nil {
			e = *coded
		}
		e.Message = fmt.Sprintf("load plugin %q: %s", p.Name, e.Message)
		return s.refused(info, &e), &e
	}
	s.changed(info)
	return info, nil
}

// Unload takes the plugin that was loaded from a source out. Iterations that have
// begun, and parked steps, end with it.
func (s *Set) Unload(source string) error {
	s.loading.Lock()
	defer s.loading.Unlock()
	if err := s.opt.Alive(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.source(source)
	if at < 0 {
		return failure.New(abi.NotFound, "unload plugin: none was loaded from %q", source)
	}
	if s.infos[at].Trusted {
		return failure.New(abi.Denied, "unload plugin %q: it is part of this program", source)
	}
	digest := s.infos[at].Digest
	var rest []*Module
	for _, m := range s.live.modules {
		if m.Digest() != digest || s.infos[at].State != plugin.Live {
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

// source returns where in infos the plugin of a source is, -1 for nowhere. The
// caller has the mutex.
func (s *Set) source(name string) int {
	return slices.IndexFunc(s.infos, func(i plugin.Info) bool { return i.Source == name })
}

// replace puts m in the place of the live module of the same source, or of the
// source replaces, or beside the others. The caller holds loading.
func (s *Set) replace(replaces string, next *Module, info *plugin.Info) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	// A module that is in memory already, of an older time or the live one, is
	// taken as it is, unless its instances are to be used otherwise.
	if have := s.byDigest[next.Digest()]; have != nil && (have.reuse == next.reuse || have.trusted) {
		if !have.trusted {
			have.grant.Store(next.grant.Load())
		}
		unload(next.Loaded)
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
	if at >= 0 && s.infos[at].State == plugin.Live {
		if s.infos[at].Trusted && !info.Trusted {
			s.discard(next)
			return failure.New(abi.Denied, "plugin %q is part of this program", s.infos[at].Name)
		}
		digest := s.infos[at].Digest
		place = slices.IndexFunc(modules, func(h *Module) bool { return h.Digest() == digest })
	}
	for i, other := range modules {
		if i != place && other.Digest() == next.Digest() {
			s.discard(next)
			return failure.New(abi.Conflict, "the same plugin is live from another file")
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
			err = s.checkModules(modules)
		}
		if err != nil {
			s.discard(next)
			return err
		}
		s.swap(table)
	}
	info.State, info.Problem, info.Refused, info.Next = plugin.Live, "", "", nil
	delete(s.waits, info.Source)
	s.note(at, *info)
	return nil
}

// discard counts a holder and gives it back, so that a module that is not wanted
// is kept or unloaded like any other. The caller has the mutex.
func (s *Set) discard(m *Module) {
	s.hold(m)
	s.release(m)
}

// Swapped returns a channel that is closed when the live plugins change.
func (s *Set) Swapped() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.swapped
}

// swap makes a table the live one. The caller has the mutex.
func (s *Set) swap(table *Table) {
	// Held before the old ones are released, so that what is in both tables is never
	// without a holder.
	for _, m := range table.modules {
		s.hold(m)
	}
	old := s.live
	table.swaps = old.swaps
	if s.opened.Load() {
		table.swaps++
	}
	s.live = table
	close(s.swapped)
	s.swapped = make(chan struct{})
	if old.users--; old.users == 0 {
		for _, m := range old.modules {
			s.release(m)
		}
	}
}

// note remembers what is known of a plugin at a place in infos, or as the last.
// Modules of tests have no source and are not listed.
func (s *Set) note(at int, info plugin.Info) {
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
// [Set.Regrant].
func (s *Set) refused(info plugin.Info, why error) plugin.Info {
	info.Problem = why.Error()
	waits := info.State == plugin.Waiting
	if !waits {
		info.State, info.Types = plugin.Refused, nil
	}
	s.mu.Lock()
	delete(s.waits, info.Source)
	if waits {
		s.waits[info.Source] = info
	}
	at := s.source(info.Source)
	if at >= 0 && s.infos[at].State == plugin.Live {
		// What serves is still the old one, with its version and digest.
		live := &s.infos[at]
		live.Refused, live.Next = info.Problem, nil
		if waits {
			live.Next = &plugin.Version{Version: info.Version, Digest: info.Digest, Permissions: info.Permissions, Problem: info.Problem}
			if live.Grant != nil {
				live.Next.Missing = live.Grant.Missing(info.Permissions)
			}
		}
		now := *live
		s.mu.Unlock()
		s.log(now, info, why)
		s.changed(now)
		return info
	}
	s.note(at, info)
	s.mu.Unlock()
	s.log(info, info, why)
	s.changed(info)
	return info
}

// log writes for the operator that a version of a plugin is not live. Who denied
// it knows, so a denial that is for good is no warning.
func (s *Set) log(now, version plugin.Info, why error) {
	level := slog.LevelWarn
	if e := abi.As(why); version.State == plugin.Waiting && e != nil && e.Permanent {
		level = slog.LevelDebug
	}
	serves := ""
	if now.Digest != version.Digest {
		serves = now.Digest
	}
	text := "plugin is not live"
	if version.State == plugin.Waiting {
		text = "plugin waits for approval"
	}
	s.opt.Log.Log(context.Background(), level, text, "plugin", version.Name, "file", version.Source, "digest", version.Digest, "serves", serves, "reason", version.Problem)
}

// changed reports a change of a plugin. Changes are reported one after the
// other, since the caller holds loading.
func (s *Set) changed(info plugin.Info) {
	if info.Source != "" && s.opt.Changed != nil {
		s.opt.Changed(info)
	}
}
