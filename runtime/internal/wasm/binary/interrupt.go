package binary

import (
	"bytes"
	"iter"
)

// Opcodes. Those of bulk instructions follow the prefix opBulk.
const (
	opCall, opCallIndirect                = 0x10, 0x11
	opMemoryGrow, opBulk                  = 0x40, 0xfc
	opMemoryInit, opMemoryCopy            = 8, 10
	opMemoryFill, opTableInit             = 11, 12
	opTableCopy, opTableGrow, opTableFill = 14, 15, 17
)

// Interruption is how a rewrite makes an instruction interruptible.
type Interruption int

const (
	Unchanged  Interruption = iota // the instruction takes negligible time
	LoopBefore                     // an empty loop precedes it
	CallFill                       // it becomes a call of the first added function
	CallCopy                       // it becomes a call of the second added function
)

// interruptPoints determines which instructions of a module need an interruption
// point.
type interruptPoints struct {
	wasi     []bool // by function index: the function is imported from WASI
	indirect bool   // a call through a table may reach a WASI function
}

func (m *Module) interruptPoints() interruptPoints {
	p := interruptPoints{wasi: make([]bool, 0, len(m.Imports))}
	for _, im := range m.Imports {
		if im.Kind == KindFunction {
			wasi := im.Module == WASIModule
			p.indirect = p.indirect || wasi && m.values[len(p.wasi)]
			p.wasi = append(p.wasi, wasi)
		}
	}
	return p
}

// classify returns what the rewrite does with an instruction, which includes its
// immediates.
func (p interruptPoints) classify(instruction []byte) Interruption {
	switch instruction[0] {
	case opMemoryGrow:
		return LoopBefore
	case opCall:
		if len(p.wasi) == 0 {
			return Unchanged
		}
		r := newReader(instruction, 1, len(instruction))
		if f := r.u32(); int64(f) < int64(len(p.wasi)) && p.wasi[f] {
			return LoopBefore
		}
	case opCallIndirect:
		if p.indirect {
			return LoopBefore
		}
	case opBulk:
		r := newReader(instruction, 1, len(instruction))
		return classifyBulk(r.u32(), instruction[r.off:])
	}
	return Unchanged
}

// classifyBulk classifies an instruction that has the prefix opBulk.
func classifyBulk(op uint32, indices []byte) Interruption {
	// The compiler rejects memories other than 0 and longer encodings of 0.
	switch {
	case op == opMemoryFill && bytes.Equal(indices, []byte{0}):
		return CallFill
	case op == opMemoryCopy && bytes.Equal(indices, []byte{0, 0}):
		return CallCopy
	}
	switch op {
	case opMemoryInit, opMemoryCopy, opMemoryFill, opTableInit, opTableCopy, opTableGrow, opTableFill:
		return LoopBefore
	}
	return Unchanged
}

// Instructions returns the instructions of a body with their immediates, except the
// end of the function, and how each is made interruptible. If the last one is cut
// off, which the compiler rejects, it is returned as it is. The module must have
// been scanned as untrusted.
func (m *Module) Instructions(b Body) iter.Seq2[[]byte, Interruption] {
	return func(yield func([]byte, Interruption) bool) {
		r := newReader(m.Raw, b.Code, b.End-1)
		counts := costs{locals: map[uint32]struct{}{}, points: m.points}
		for r.left() > 0 {
			start := r.off
			counts.instruction(r)
			instruction, how := m.Raw[start:r.off], Unchanged
			if r.err == nil {
				how = m.points.classify(instruction)
			}
			if !yield(instruction, how) {
				return
			}
		}
	}
}
