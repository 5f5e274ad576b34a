package wasm

// Kinds of imports and exports in the binary format.
const (
	kindFunc, kindTable, kindMemory, kindGlobal = 0, 1, 2, 3
)

// Value types of WebAssembly 2.0, and the form of a function type.
const (
	typeI32, typeI64, typeF32, typeF64 = 0x7f, 0x7e, 0x7d, 0x7c
	typeV128, typeFuncref, typeExtern  = 0x7b, 0x70, 0x6f
	typeFunc                           = 0x60
)

// valueType reads one value type.
func valueType(r *reader) byte {
	switch t := r.byte(); t {
	case typeI32, typeI64, typeF32, typeF64, typeV128, typeFuncref, typeExtern:
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
func (l *layout) readTypes(r *reader) {
	for n := r.count("types", maxTypes); n > 0 && r.err == nil; n-- {
		if form := r.byte(); form != typeFunc {
			r.fail("type form 0x%x is beyond WebAssembly 2.0", form)
			return
		}
		l.types = append(l.types, funcType{params: valueTypes(r), results: valueTypes(r)})
	}
}

// typeIndex reads the index of a declared type.
func (l *layout) typeIndex(r *reader) uint32 {
	i := r.u32()
	if r.err == nil && int64(i) >= int64(len(l.types)) {
		r.fail("type %d is not declared", i)
		return 0
	}
	return i
}

// readImports reads the import section. link.go decides which imports are allowed.
func (l *layout) readImports(r *reader) {
	for n := r.count("imports", maxImports); n > 0 && r.err == nil; n-- {
		im := importEntry{module: r.name(), name: r.name()}
		im.kind, im.typ = l.readImport(r)
		l.imports = append(l.imports, im)
	}
}

// readImport reads the description of one import: its kind, and the type index of
// a function.
func (l *layout) readImport(r *reader) (kind byte, typ uint32) {
	switch kind = r.byte(); kind {
	case kindFunc:
		typ = l.typeIndex(r)
	case kindTable:
		readTable(r)
	case kindMemory:
		readLimits(r, maxPages, "memory pages")
	case kindGlobal:
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
func readTable(r *reader) table {
	t := table{elem: r.byte()}
	if r.err == nil && t.elem != typeFuncref && t.elem != typeExtern {
		r.fail("table of type 0x%x is beyond WebAssembly 2.0", t.elem)
	}
	t.min, t.max = readLimits(r, maxTable, "table entries")
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

// readData reads one data segment. One that cannot be merged clears mergeable.
func (l *layout) readData(r *reader) {
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
	size := r.count("bytes of a data segment", maxModule)
	if !isConst {
		l.mergeable = false
	}
	l.segments = append(l.segments, segment{offset: uint32(offset), data: span{r.off, r.off + size}})
	r.bytes(size)
}
