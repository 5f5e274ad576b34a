package wasm

import "time"

// The compiler takes no deadline, and its time grows with the square of a
// function's control flow and of its loops times its locals, hardly with its
// size: 16,000 loops in 48 KB take nine seconds, 250 nested loops over 2,000
// locals in 19 KB two minutes. What a compile may cost at worst is estimated from
// the instructions, and what is hopeless is refused at once, with words that help
// its author. The estimate is up to fifty times too high, so it leaves room: the
// bound that holds is that of the child, which ends at Options.CompileTime.
// Real modules stay far below: a Go guest of 2,000 functions is estimated at three
// seconds, 0.15 for its worst function, and takes one.
const (
	maxCost    = time.Minute     // of one function
	maxAllCost = 5 * time.Minute // of a module
)

// costs counts what makes one function slow to compile.
type costs struct {
	edges  int64               // blocks, branches, branch targets
	loops  int64               // with those that the rewrite adds
	locals map[uint32]struct{} // that are accessed
	points points
	bulk   bool // there are instructions that the rewrite changes
	calls  bool // some of them become calls
}

// newCosts returns counts for the functions of a module, whose imports, globals,
// exports and elements have been read.
func (l *layout) newCosts() costs {
	return costs{locals: map[uint32]struct{}{}, points: l.points()}
}

// estimate returns what the worst functions found of these counts took on a
// machine of two slow processors; other shapes take down to a fiftieth of it.
func (c *costs) estimate() time.Duration {
	edges, loops, locals := float64(c.edges), float64(c.loops), float64(len(c.locals))
	phis := loops * locals
	return time.Duration(min(25*edges*edges+2000*edges*locals+0.55*phis*phis, float64(time.Hour)))
}

// cost estimates how long the code of a function takes to compile.
func (c *costs) cost(r *reader) time.Duration {
	c.edges, c.loops = 2, 1 // the block and the loop that the rewrite adds
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
		plain(r, op)
		if r.err == nil {
			c.use(c.points.of(r.b[start:r.off]))
		}
	}
}

// use counts what the rewrite makes of an instruction.
func (c *costs) use(use bulkUse) {
	switch use {
	case bulkLoop:
		c.loops++
		c.edges++
	case bulkFill, bulkCopy:
		c.calls = true
	case bulkNone:
		return
	}
	c.bulk = true
}

// plain skips an instruction that costs nothing in particular.
func plain(r *reader, op byte) {
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
		bulk(r)
	case 0xfd:
		vector(r)
	default:
		r.fail("instruction 0x%x is beyond WebAssembly 2.0", op)
	}
}

// bulk skips a bulk memory, table or saturating conversion instruction.
func bulk(r *reader) {
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

// vector skips a vector instruction.
func vector(r *reader) {
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
