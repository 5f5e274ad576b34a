package wasm

// callMemoryImports returns the renamed imports with their types, which
// checkImports has checked.
func (l *layout) callMemoryImports() map[string]funcType {
	found := map[string]funcType{}
	for _, im := range l.imports {
		if im.renamed() {
			found[im.name] = l.types[im.typ]
		}
	}
	return found
}

// renamed reports whether the rewrite gives the import to the call memory.
func (im importEntry) renamed() bool {
	return im.module == kernelModule && im.kind == kindFunc && callMemoryFuncs[im.name] != nil
}

// importSection writes the imports, with those of the call memory renamed.
func (l *layout) importSection(content []byte) []byte {
	r := newReader(content, 0, len(content))
	out := appendU32(make([]byte, 0, len(content)), r.u32())
	for _, im := range l.imports {
		r.name()
		start := r.off
		r.name()
		l.readImport(r)
		module := im.module
		if im.renamed() {
			module = callMemoryModule
		}
		out = append(appendU32(out, uint32(len(module))), module...)
		out = append(out, content[start:r.off]...)
	}
	return out
}
