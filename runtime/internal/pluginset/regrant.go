package pluginset

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// ask returns what a version of a plugin may do. The error denied means that it
// has to wait, or, where no person can decide, that it is never granted.
func (s *Set) ask(ctx context.Context, info plugin.Info) (plugin.Grant, error) {
	switch {
	case info.Trusted:
		return plugin.Grant{Allow: info.Permissions}, nil
	case s.opt.Grants != nil:
		return s.opt.Grants.Grant(ctx, info)
	case len(info.Permissions) > 0:
		return plugin.Grant{}, &abi.Error{Code: abi.Denied, Message: fmt.Sprintf("plugin %q asks for permissions, and this program grants none to plugins of others", info.Name),
			Hint: "use a plugin that asks for nothing"}
	}
	return plugin.Grant{}, nil
}

// renew asks again what a module may do that no file stands for any more, such
// as the one that a parked step began with. Where that is unknown it keeps
// what it had, which for a module that was just loaded is nothing.
func (s *Set) renew(ctx context.Context, m *Module) {
	if m.trusted {
		return
	}
	info := plugin.Info{}
	describe(&info, m.Digest(), m.Manifest())
	grant, err := s.ask(ctx, info)
	switch {
	case err == nil:
		m.allow(&grant)
	case abi.CodeOf(err) == abi.Denied:
		m.allow(nil)
	default:
		s.opt.Log.Warn("grant of an old version of a plugin cannot be read", "plugin", info.Name, "digest", info.Digest, "error", err)
	}
}

// Regrant asks Options.Grants again about every plugin. One that waited and is
// allowed now becomes live as by Load. One that is not allowed any more waits: its
// step types are unknown from now on, and host calls that its steps under way begin
// are denied. The error joins what could not be determined; those plugins stay as
// they are.
func (s *Set) Regrant(ctx context.Context) error {
	s.loading.Lock()
	defer s.loading.Unlock()
	if err := s.opt.Alive(); err != nil {
		return err
	}
	if s.opt.Grants == nil {
		return nil
	}
	s.mu.Lock()
	s.asked++
	infos := slices.Clone(s.infos)
	held := map[string]*Module{}
	for d, m := range s.byDigest {
		held[d] = m
	}
	s.mu.Unlock()
	var errs []error
	for _, info := range infos {
		if info.State != plugin.Live || info.Trusted {
			continue
		}
		if m := held[info.Digest]; m != nil {
			delete(held, info.Digest)
			if err := s.regrantLive(ctx, info, m); err != nil {
				errs = append(errs, err)
			}
		}
	}
	for _, m := range held {
		s.renew(ctx, m)
	}
	return errors.Join(append(errs, s.tryWaiting(ctx)...)...)
}

// regrantLive asks what a live plugin may do, or takes it out.
func (s *Set) regrantLive(ctx context.Context, info plugin.Info, m *Module) error {
	version := info
	version.Grant, version.Next, version.Refused = nil, nil, ""
	grant, err := s.ask(ctx, version)
	switch {
	case abi.CodeOf(err) == abi.Denied:
		return s.revoke(info, m, err)
	case err != nil:
		return fmt.Errorf("grant of plugin %q: %w", info.Name, err)
	case (grant.Reuse && info.Stateless) != m.reuse:
		// Whether instances serve again is decided when a module is loaded.
		return s.reload(ctx, version)
	}
	m.allow(&grant)
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.source(info.Source); at >= 0 {
		s.infos[at].Grant = &grant
		if next := s.infos[at].Next; next != nil {
			again := *next
			again.Missing = grant.Missing(again.Permissions)
			s.infos[at].Next = &again
		}
	}
	return nil
}

// revoke takes a live plugin out because it is not allowed any more.
func (s *Set) revoke(info plugin.Info, m *Module, why error) error {
	s.mu.Lock()
	rest := slices.DeleteFunc(slices.Clone(s.live.modules), func(h *Module) bool { return h == m })
	table, err := newTable(rest)
	if err != nil {
		s.mu.Unlock()
		return err
	}
	// Denied before the table changes: a step that still uses it is allowed nothing.
	m.allow(nil)
	s.swap(table)
	waits := info
	waits.State, waits.Problem, waits.Grant, waits.Refused, waits.Next = plugin.Waiting, why.Error(), nil, "", nil
	if _, newer := s.waits[info.Source]; !newer {
		s.waits[info.Source] = waits
	}
	if at := s.source(info.Source); at >= 0 {
		s.infos[at] = waits
	}
	s.mu.Unlock()
	s.log(waits, waits, why)
	s.changed(waits)
	return nil
}

// tryWaiting makes every waiting version live that is allowed by now. A version that
// is not is neither compiled nor executed for the question.
func (s *Set) tryWaiting(ctx context.Context) (errs []error) {
	s.mu.Lock()
	var versions []plugin.Info
	for _, i := range s.infos { // in their order, which decides between equals
		if w, ok := s.waits[i.Source]; ok {
			versions = append(versions, w)
		}
	}
	s.mu.Unlock()
	for _, v := range versions {
		before := v.Problem
		v.Problem = ""
		_, err := s.ask(ctx, v)
		switch {
		case err == nil:
			err = s.reload(ctx, v)
		case abi.CodeOf(err) != abi.Denied:
			err = fmt.Errorf("grant of plugin %q: %w", v.Name, err)
		default:
			if err.Error() != before {
				s.refused(v, err)
			}
			err = nil
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// reload loads a version from its blob, in the place of its source. That it is
// refused, or still waits, is recorded and is not an error.
func (s *Set) reload(ctx context.Context, version plugin.Info) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	code, err := s.opt.Blobs.Blob(version.Digest)
	if err != nil {
		return fmt.Errorf("load plugin %q: %w", version.Name, err)
	}
	info := plugin.Info{Name: version.Name, Source: version.Source}
	module, err := s.openCode(ctx, code, false)
	if err == nil {
		err = s.install(ctx, module, plugin.Source{Name: version.Source}, &info)
	}
	switch {
	case err == nil:
		s.changed(info)
	case info.State == plugin.Waiting || abi.CodeOf(err) != abi.Internal:
		s.refused(info, err)
	default:
		return fmt.Errorf("load plugin %q: %w", version.Name, err)
	}
	return nil
}
