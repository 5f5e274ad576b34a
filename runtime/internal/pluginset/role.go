package pluginset

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// provides reports whether the module's step types may be used in a role.
func (m *Module) provides(as abi.Role) bool {
	return m.trusted || m.AllowsRequested(abi.UseProvide, string(as))
}

// Provided returns the step types that are live and allowed in a role, by the names of
// their plugins, and of one plugin in the order of its manifest.
func (s *Set) Provided(as abi.Role) []plugin.Provided {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []plugin.Provided
	for _, m := range s.live.modules {
		manifest := m.Manifest()
		for _, t := range manifest.Steps {
			if t.Provides == nil || t.Provides.As != as || !m.provides(as) {
				continue
			}
			p := providedBy(manifest, t)
			p.Digest = m.Digest()
			grant, _ := m.Allowed()
			p.Commands, _ = grant.Names(abi.UseCommand)
			list = append(list, p)
		}
	}
	slices.SortStableFunc(list, func(a, b plugin.Provided) int { return cmp.Compare(a.Plugin, b.Plugin) })
	return list
}

// providedBy describes the role of a step type, without what depends on the module and its
// grant.
func providedBy(manifest wasm.Manifest, t wasm.StepType) plugin.Provided {
	return plugin.Provided{
		As: t.Provides.As, Name: t.Provides.Name, Type: sentinels.StepType(t.Type), Plugin: manifest.Name, Summary: t.Summary,
		Fields: t.Fields, Output: t.Output, Aliases: t.Aliases, ReadOnly: t.ReadOnly,
	}
}

// Unprovided returns why a role is not active: name is that of a command, else of a step
// type. It returns nil if no plugin has it.
func (s *Set) Unprovided(as abi.Role, name string) *abi.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.infos {
		for _, r := range i.Roles {
			if r.As != as || cmp.Or(r.Name, string(r.Type)) != name {
				continue
			}
			e := failure.New(abi.Denied, "%q is provided by plugin %q, which is not allowed to provide a role %s", name, i.Name, as)
			switch i.State {
			case plugin.Waiting:
				e.Message = fmt.Sprintf("%q is provided by plugin %q, which waits for approval", name, i.Name)
			case plugin.Refused:
				return failure.New(abi.Unavailable, "%q is provided by plugin %q, which cannot be loaded: %s", name, i.Name, i.Problem)
			}
			e.Hint = "sentinel plugin allow " + i.Name
			return e
		}
	}
	return nil
}

// markActive sets which roles of live plugins are active. The caller has the mutex.
func (s *Set) markActive(infos []plugin.Info) {
	for n := range infos {
		i := &infos[n]
		if len(i.Roles) == 0 {
			continue
		}
		m := s.byDigest[i.Digest]
		i.Roles = slices.Clone(i.Roles)
		for k := range i.Roles {
			i.Roles[k].Active = i.State == plugin.Live && m != nil && m.provides(i.Roles[k].As)
		}
	}
}

// takenCommands returns the commands of more that t has already. Their names begin with
// that of the plugin, so two plugins have one only if they have the same name.
func (t *Table) takenCommands(more *Module) (taken []string) {
	for _, mine := range more.Manifest().Steps {
		if mine.Provides == nil || mine.Provides.Name == "" {
			continue
		}
		for _, m := range t.modules {
			if m == more {
				break // the later of two is refused
			}
			for _, other := range m.Manifest().Steps {
				if other.Provides != nil && other.Provides.Name == mine.Provides.Name {
					taken = append(taken, fmt.Sprintf("command %q is already provided by plugin %q", mine.Provides.Name, m.Manifest().Name))
				}
			}
		}
	}
	return taken
}
