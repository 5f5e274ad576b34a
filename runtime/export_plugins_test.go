package runtime

// SwapModule makes m live as if it was loaded from source.
func SwapModule(rt *Runtime, source string, m *GoModule) error {
	rt.plugins.loading.Lock()
	defer rt.plugins.loading.Unlock()
	h, err := holdable(m, true)
	if err != nil {
		return err
	}
	return rt.plugins.replace("", h, &PluginInfo{Name: m.Name, Source: source, Digest: m.Digest()})
}

// Modules returns how many modules are in memory, live ones too, and how many
// of them somebody holds.
func Modules(rt *Runtime) (all, held int) {
	rt.plugins.mu.Lock()
	defer rt.plugins.mu.Unlock()
	return len(rt.plugins.byDigest), len(rt.plugins.byDigest) - len(rt.plugins.idle)
}

// AddUntrusted makes a module live that others wrote, with what [Options.Grants]
// allows it.
func AddUntrusted(rt *Runtime, m *GoModule) error {
	rt.plugins.loading.Lock()
	defer rt.plugins.loading.Unlock()
	h, err := holdable(m, false)
	if err != nil {
		return err
	}
	info := PluginInfo{Source: m.Name + ".wasm"}
	info.describe(m.Digest(), m.Manifest())
	grant, err := rt.plugins.ask(rt.ctx, info)
	if err != nil {
		return err
	}
	h.allow(&grant)
	return rt.plugins.replace("", h, &info)
}

// Guests returns how many modules the guest host holds.
func Guests(rt *Runtime) int { return rt.wasm.Modules() }

// Memory returns the limit of the guest's linear memory, in bytes.
func (g *GoGuest) Memory() int64 { return g.inv.Limits.MemoryBytes }
