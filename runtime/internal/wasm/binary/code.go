package binary

import "time"

// readCode reads the code section: the span of each body and its number of
// locals. It decodes the bodies of an untrusted module to estimate how long the
// compiler takes for them.
func (m *Module) readCode(r *reader, trusted bool) {
	totalLocals, totalCost := 0, time.Duration(0)
	counts := m.newCosts()
	m.points = counts.points
	n := r.count("function bodies", maxFuncs)
	in := newReader(m.Raw, 0, 0) // of one body at a time
	for m.Bodies = make([]Body, 0, n); n > 0 && r.err == nil; n-- {
		size := r.count("bytes of a function body", MaxModule)
		b := Body{Span: Span{r.off, r.off + size}}
		if !trusted && size > maxBody {
			r.fail("function %d has %d bytes, at most %d are allowed", len(m.Bodies), size, maxBody)
			return
		}
		locals := 0
		in.off, in.end = b.Start, b.End
		for k := in.count("groups of locals", maxLocals); k > 0 && in.err == nil; k-- {
			group := in.u32()
			valueType(in)
			if in.err == nil && int64(group)+int64(locals) > maxLocals {
				in.fail("function %d has more than %d locals", len(m.Bodies), maxLocals)
				break
			}
			locals += int(group)
		}
		b.Code = in.off
		if totalLocals += locals; in.err == nil && totalLocals > maxAllLocal {
			in.fail("more than %d locals in all", maxAllLocal)
		}
		if in.err == nil && (b.Code >= b.End || m.Raw[b.End-1] != 0x0b) {
			in.fail("function %d has no end instruction", len(m.Bodies))
		}
		if in.err == nil && !trusted {
			cost := counts.cost(in)
			totalCost += cost
			b.Bulk = counts.bulk
			m.BulkCalls = m.BulkCalls || counts.calls
			if cost > maxCost || totalCost > maxAllCost {
				in.fail("function %d would take too long to compile: it has %d branches, %d loops and %d locals in use", len(m.Bodies), counts.edges, counts.loops, len(counts.locals))
			}
		}
		if in.err != nil {
			r.err = in.err
			return
		}
		r.bytes(size)
		m.Bodies = append(m.Bodies, b)
	}
}

// skipPlain skips the immediates of an instruction that does not add to the cost
// of a compile.
func skipPlain(r *reader, op byte) {
	switch op {
	case 0x00, 0x01, 0x05, 0x0b, 0x0f, 0x1a, 0x1b, 0xd1:
	case 0x10, 0xd2, 0x3f, 0x40: // call, ref.func, memory.size, memory.grow
		r.u32()
	case 0x11: // call_indirect
		r.u32()
		r.u32()
	case 0x1c: // select with types
		valueTypes(r)
	case 0x41, 0x42:
		r.s64()
	case 0x43:
		r.bytes(4)
	case 0x44:
		r.bytes(8)
	case 0xd0:
		r.s64()
	case 0xfc:
		skipBulk(r)
	case 0xfd:
		skipVector(r)
	default:
		r.fail("instruction 0x%x is beyond WebAssembly 2.0", op)
	}
}

// skipBulk skips a bulk memory, table or saturating conversion instruction.
func skipBulk(r *reader) {
	switch op := r.u32(); {
	case op <= 7: // conversions
	case op == 9, op == 11, op == 13, op >= 15 && op <= 17:
		r.u32()
	case op == 8, op == 10, op == 12, op == 14:
		r.u32()
		r.u32()
	default:
		r.fail("instruction 0xfc %d is beyond WebAssembly 2.0", op)
	}
}

// skipVector skips a vector instruction.
func skipVector(r *reader) {
	switch op := r.u32(); {
	case op <= 11, op == 92, op == 93: // loads and stores
		r.u32()
		r.u32()
	case op == 12, op == 13: // constant, shuffle
		r.bytes(16)
	case op >= 21 && op <= 34: // lanes
		r.byte()
	case op >= 84 && op <= 91: // loads and stores of a lane
		r.u32()
		r.u32()
		r.byte()
	case op > 255:
		r.fail("instruction 0xfd %d is beyond WebAssembly 2.0", op)
	}
}
