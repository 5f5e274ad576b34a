package runtime

import "github.com/sentinel-runtime/sentinel/runtime/plugin"

// SwapModule makes m live as if it was loaded from source.
func SwapModule(rt *Runtime, source string, m *GoModule) error {
	return rt.plugins.Put(rt.ctx, m, true, plugin.Info{Name: m.Name, Source: source, Digest: m.Digest()})
}

// Modules returns how many modules are in memory, live ones too, and how many
// of them are held.
func Modules(rt *Runtime) (all, held int) { return rt.plugins.Modules() }

// AddUntrusted makes a module live that others wrote, with what [Options.Grants]
// allows it.
func AddUntrusted(rt *Runtime, m *GoModule) error {
	return rt.plugins.Put(rt.ctx, m, false, plugin.Info{Source: m.Name + ".wasm"})
}

// Guests returns how many modules the guest host holds.
func Guests(rt *Runtime) int { return rt.guests.Modules() }

// Memory returns the limit of the guest's linear memory, in bytes.
func (g *GoGuest) Memory() int64 { return g.inv.Limits.MemoryBytes }
