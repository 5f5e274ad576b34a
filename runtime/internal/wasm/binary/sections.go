package binary

// valueType reads one value type.
func valueType(r *reader) byte {
	switch t := r.byte(); t {
	case I32, I64, F32, F64, V128, Funcref, Externref:
		return t
	default:
		r.fail("value type 0x%x is beyond WebAssembly 2.0", t)
		return 0
	}
}

// valueTypes reads a vector of value types. The result aliases the module.
func valueTypes(r *reader) []byte {
	n := r.count("parameters or results", maxArity)
	start := r.off
	for ; n > 0 && r.err == nil; n-- {
		valueType(r)
	}
	if r.err != nil {
		return nil
	}
	return r.b[start:r.off]
}

// readTypes reads the type section.
func (m *Module) readTypes(r *reader) {
	for n := r.count("types", maxTypes); n > 0 && r.err == nil; n-- {
		if form := r.byte(); form != FormFunction {
			r.fail("type form 0x%x is beyond WebAssembly 2.0", form)
			return
		}
		m.Types = append(m.Types, FuncType{Params: valueTypes(r), Results: valueTypes(r)})
	}
}

// typeIndex reads the index of a declared type.
func (m *Module) typeIndex(r *reader) uint32 {
	i := r.u32()
	if r.err == nil && int64(i) >= int64(len(m.Types)) {
		r.fail("type %d is not declared", i)
		return 0
	}
	return i
}

// readImports reads the import section. It does not decide which imports are allowed.
func (m *Module) readImports(r *reader) {
	for n := r.count("imports", maxImports); n > 0 && r.err == nil; n-- {
		im := Import{Module: r.name()}
		im.Start = r.off
		im.Name = r.name()
		im.Kind, im.Type = m.readImport(r)
		im.End = r.off
		m.Imports = append(m.Imports, im)
	}
}

// readImport reads the description of one import: its kind, and the type index of
// a function.
func (m *Module) readImport(r *reader) (kind byte, typ uint32) {
	switch kind = r.byte(); kind {
	case KindFunction:
		typ = m.typeIndex(r)
	case KindTable:
		readTable(r)
	case KindMemory:
		readLimits(r, MaxPages, "memory pages")
	case KindGlobal:
		valueType(r)
		r.byte()
	default:
		r.fail("import kind %d is beyond WebAssembly 2.0", kind)
	}
	return kind, typ
}

// readLimits reads a minimum and a maximum. A missing maximum is the bound.
func readLimits(r *reader, bound uint32, what string) (low, high uint32) {
	high = bound
	switch flags := r.byte(); flags {
	case 0:
		low = r.u32()
	case 1:
		low, high = r.u32(), r.u32()
	default:
		r.fail("limits of kind %d (shared or 64 bit) are beyond WebAssembly 2.0", flags)
	}
	if r.err == nil && low > bound {
		r.fail("%d %s at the start, at most %d are allowed", low, what, bound)
	}
	return low, high
}

// readTable reads one table type.
func readTable(r *reader) Table {
	t := Table{Elem: r.byte()}
	if r.err == nil && t.Elem != Funcref && t.Elem != Externref {
		r.fail("table of type 0x%x is beyond WebAssembly 2.0", t.Elem)
	}
	t.Min, t.Max = readLimits(r, MaxTable, "table entries")
	return t
}

// constExpr reads a constant expression up to its end. It returns the value if
// the expression is a single i32 constant.
func constExpr(r *reader) (value int32, isConst bool) {
	for n := 0; r.err == nil; n++ {
		switch op := r.byte(); op {
		case 0x0b:
			return value, isConst && n == 1
		case 0x41:
			value, isConst = int32(r.s64()), true
		case 0x42:
			r.s64()
		case 0x43:
			r.bytes(4)
		case 0x44:
			r.bytes(8)
		case 0x23: // global.get
			r.u32()
		case 0xd2: // ref.func
			r.funcIndex()
		case 0xd0: // ref.null
			r.byte()
		case 0xfd: // v128.const
			if r.u32() != 0x0c {
				r.fail("a constant expression has a vector instruction other than v128.const")
			}
			r.bytes(16)
		default:
			r.fail("a constant expression has instruction 0x%x", op)
		}
	}
	return 0, false
}

// readElem skips one element segment and checks its counts.
func readElem(r *reader) {
	flags := r.u32()
	if flags > 7 {
		r.fail("element segment of kind %d is beyond WebAssembly 2.0", flags)
		return
	}
	if flags&1 == 0 { // active
		if flags&2 != 0 {
			r.u32() // table
		}
		constExpr(r)
	}
	if flags&3 != 0 {
		r.byte() // element kind or reference type
	}
	for n := r.count("elements", maxEntries); n > 0 && r.err == nil; n-- {
		if flags&4 != 0 {
			constExpr(r)
		} else {
			r.funcIndex()
		}
	}
}

// readData reads one data segment. One that cannot be merged clears Mergeable.
func (m *Module) readData(r *reader) {
	flags := r.u32()
	if flags > 2 {
		r.fail("data segment of kind %d is beyond WebAssembly 2.0", flags)
		return
	}
	offset, isConst := int32(0), false
	if flags != 1 { // active
		if flags == 2 && r.u32() != 0 {
			r.fail("data of a second memory is beyond WebAssembly 2.0")
		}
		offset, isConst = constExpr(r)
	}
	size := r.count("bytes of a data segment", MaxModule)
	if !isConst {
		m.Mergeable = false
	}
	m.Segments = append(m.Segments, Segment{Offset: uint32(offset), Data: Span{r.off, r.off + size}})
	r.bytes(size)
}
