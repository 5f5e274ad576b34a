package binary

import "fmt"

// reader decodes the WebAssembly binary format. It keeps its first error, and
// every later read returns zero, so that a parser can check for errors once at the
// end. A loop over a count must check err in each turn.
type reader struct {
	b   []byte
	off int // position in the module, for error texts and spans
	end int
	err error

	values []bool // marks of funcIndex by function index; its length bounds them
}

// newReader returns a reader of b[start:end]. Positions are offsets in b.
func newReader(b []byte, start, end int) *reader { return &reader{b: b, off: start, end: end} }

// fail sets err if it is the first error, and ends the input.
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

// bytes returns the next n bytes. They alias the module.
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

// count reads the length of a vector. Every entry takes at least one byte, so a
// length beyond the remaining bytes is invalid, and wazero would allocate memory
// for it.
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

// name reads a name, which has its length before it.
func (r *reader) name() string { return string(r.bytes(r.count("bytes of a name", maxName))) }

// funcIndex reads the index of a function that is used as a value and marks it.
func (r *reader) funcIndex() uint32 {
	i := r.u32()
	if r.err == nil && int64(i) < int64(len(r.values)) {
		r.values[i] = true
	}
	return i
}

// AppendU32 appends v as unsigned LEB128.
func AppendU32(b []byte, v uint32) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

// AppendS64 appends v as signed LEB128.
func AppendS64(b []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}
