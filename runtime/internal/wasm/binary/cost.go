package binary

import "time"

// wazero's compiler takes no deadline. Its time grows with the square of the
// control flow of a function and with the square of its loops times its locals,
// and hardly with its size: 16,000 loops in 48 KB take 9 s, 250 nested loops over
// 2,000 locals in 19 KB take two minutes. The worst case is estimated from the
// instructions, and a module far beyond any use is rejected before it is compiled,
// with an error that helps its author. The estimate is up to fifty times too high
// and the limits allow for that; the limit that holds is Options.CompileTime of the
// compile process. A Go guest of 2,000 functions is estimated at 3 s, 0.15 s for
// its worst function, and takes 1 s.
const (
	maxCost    = time.Minute     // of one function
	maxAllCost = 5 * time.Minute // of a module
)

// costs counts what makes one function slow to compile.
type costs struct {
	edges  int64               // blocks, branches, branch targets
	loops  int64               // with those that the rewrite adds
	locals map[uint32]struct{} // locals that are accessed
	points interruptPoints
	bulk   bool // the rewrite changes an instruction
	calls  bool // an instruction becomes a call
}

// newCosts returns counts for the functions of a module. Its imports, globals,
// exports and elements must have been read.
func (m *Module) newCosts() costs {
	return costs{locals: map[uint32]struct{}{}, points: m.interruptPoints()}
}

// estimate returns how long the worst known functions with these counts took on a
// machine of two slow processors. Other functions take down to a fiftieth of it.
func (c *costs) estimate() time.Duration {
	edges, loops, locals := float64(c.edges), float64(c.loops), float64(len(c.locals))
	phis := loops * locals
	return time.Duration(min(25*edges*edges+2000*edges*locals+0.55*phis*phis, float64(time.Hour)))
}

// cost estimates how long the compiler takes for the code of a function.
func (c *costs) cost(r *reader) time.Duration {
	c.edges, c.loops = 2, 1 // for the block and the loop that the rewrite adds
	c.bulk, c.calls = false, false
	clear(c.locals)
	for r.left() > 0 && r.err == nil {
		c.instruction(r)
	}
	return c.estimate()
}

// instruction skips one instruction and counts it.
func (c *costs) instruction(r *reader) {
	start := r.off
	op := r.byte()
	switch {
	case op >= 0x45 && op <= 0xc4: // numeric
	case op >= 0x28 && op <= 0x3e: // loads and stores
		r.u32()
		r.u32()
	case op >= 0x20 && op <= 0x22: // local.get, set, tee
		c.locals[r.u32()] = struct{}{}
	case op >= 0x23 && op <= 0x26: // global and table access
		r.u32()
	case op == 0x03: // loop
		c.loops++
		fallthrough
	case op == 0x02, op == 0x04: // block, if
		r.s64()
		c.edges++
	case op == 0x0c, op == 0x0d: // br, br_if
		r.u32()
		c.edges++
	case op == 0x0e: // br_table
		n := r.count("branch targets", maxEntries)
		for range n + 1 {
			r.u32()
		}
		c.edges += int64(n) + 1
	default:
		skipPlain(r, op)
		if r.err == nil {
			c.countRewrite(c.points.classify(r.b[start:r.off]))
		}
	}
}

// countRewrite counts what the rewrite adds for an instruction.
func (c *costs) countRewrite(how Interruption) {
	switch how {
	case LoopBefore:
		c.loops++
		c.edges++
	case CallFill, CallCopy:
		c.calls = true
	case Unchanged:
		return
	}
	c.bulk = true
}
