package wasm

import "fmt"

// reader walks wasm bytes. Its first error sticks and every later read gives
// zero, so that a parse can be written without a check after each step; a loop
// over a count must look at err, since the count may be zero by accident.
type reader struct {
	b   []byte
	off int // position in the module, for messages and spans
	end int
	err error

	values []bool // by function index, as long as wanted: funcIndex has read it
}

// newReader reads b[start:end]; positions stay those of b.
func newReader(b []byte, start, end int) *reader { return &reader{b: b, off: start, end: end} }

// fail keeps the first error.
func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("byte %d: %s", r.off, fmt.Sprintf(format, args...))
		r.off = r.end
	}
}

func (r *reader) left() int { return r.end - r.off }

func (r *reader) byte() byte {
	if r.left() < 1 {
		r.fail("the module ends too early")
		return 0
	}
	r.off++
	return r.b[r.off-1]
}

// bytes returns the next n bytes, which alias the module.
func (r *reader) bytes(n int) []byte {
	if n < 0 || r.left() < n {
		r.fail("the module ends too early")
		return nil
	}
	r.off += n
	return r.b[r.off-n : r.off]
}

// u32 reads an unsigned LEB128 number of at most 32 bits.
func (r *reader) u32() uint32 {
	var v uint64
	for shift := 0; shift < 35; shift += 7 {
		c := r.byte()
		v |= uint64(c&0x7f) << shift
		if c&0x80 == 0 {
			if v > 0xffffffff {
				break
			}
			return uint32(v)
		}
	}
	r.fail("a number is out of range")
	return 0
}

// s64 reads a signed LEB128 number of at most 64 bits.
func (r *reader) s64() int64 {
	var v int64
	for shift := 0; shift < 70; shift += 7 {
		c := r.byte()
		v |= int64(c&0x7f) << shift
		if c&0x80 == 0 {
			if c&0x40 != 0 && shift+7 < 64 {
				v |= -1 << (shift + 7)
			}
			return v
		}
	}
	r.fail("a number is out of range")
	return 0
}

// count reads a vector's length. Every entry takes at least one byte, so a
// longer vector than there are bytes is a lie, and one that the engine would
// allocate for.
func (r *reader) count(what string, limit int) int {
	n := r.u32()
	switch {
	case r.err != nil:
	case int64(n) > int64(r.left()):
		r.fail("%d %s are announced in %d bytes", n, what, r.left())
	case int64(n) > int64(limit):
		r.fail("%d %s, at most %d are allowed", n, what, limit)
	default:
		return int(n)
	}
	return 0
}

// name reads a length-prefixed text.
func (r *reader) name() string { return string(r.bytes(r.count("bytes of a name", maxName))) }

// funcIndex reads the index of a function that is given as a value, not called.
func (r *reader) funcIndex() uint32 {
	i := r.u32()
	if r.err == nil && int64(i) < int64(len(r.values)) {
		r.values[i] = true
	}
	return i
}

// appendU32 appends v as LEB128.
func appendU32(b []byte, v uint32) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

// appendS64 appends v as signed LEB128.
func appendS64(b []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}
