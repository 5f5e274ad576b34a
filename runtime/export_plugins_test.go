package runtime

// SwapModule makes m live as if it was loaded from source.
func SwapModule(rt *Runtime, source string, m *GoModule) error {
	rt.plugins.loading.Lock()
	defer rt.plugins.loading.Unlock()
	return rt.plugins.replace("", m, &PluginInfo{Name: m.Name, Source: source, Digest: m.Digest()})
}

// Modules returns how many modules are in memory, live ones too, and how many
// of them somebody holds.
func Modules(rt *Runtime) (all, held int) {
	rt.plugins.mu.Lock()
	defer rt.plugins.mu.Unlock()
	return len(rt.plugins.byDigest), len(rt.plugins.byDigest) - len(rt.plugins.idle)
}
