package javascript

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// Section numbers of the binary format.
const (
	secImport, secGlobal, secExport, secData, secDataCount = 2, 6, 7, 11, 12
)

// A module is the engine's binary in the form that can be changed: some sections are
// parsed, all others are kept as they are.
type module struct {
	sections []section
	imports  []imported
	globals  []uint32          // values of the i32 constants; the engine has no other kind
	exported map[string]uint32 // number of an exported global
	data     []segment         // active ones of memory 0
}

type section struct {
	id    byte
	bytes []byte
}

// imported is one import; rest is its kind and type, as written.
type imported struct {
	module, name string
	rest         []byte
}

type segment struct {
	at    uint32
	bytes []byte
}

var header = []byte("\x00asm\x01\x00\x00\x00")

var errEnd = errors.New("it ends in the middle")

// cursor reads the binary format. It keeps the first error; all values after it are zero.
type cursor struct {
	rest []byte
	err  error
}

func (c *cursor) fail(err error) {
	if c.err == nil {
		c.err, c.rest = err, nil
	}
}

func (c *cursor) u32() uint32 {
	n, size := binary.Uvarint(c.rest)
	if size <= 0 || n > 1<<32-1 {
		c.fail(errEnd)
		return 0
	}
	c.rest = c.rest[size:]
	return uint32(n)
}

// s32 reads a signed number.
func (c *cursor) s32() int32 {
	var n int64
	for shift := 0; shift < 35; shift += 7 {
		b := c.byte()
		n |= int64(b&0x7f) << shift
		if b < 0x80 {
			if b&0x40 != 0 {
				n |= -1 << (shift + 7)
			}
			return int32(n)
		}
	}
	c.fail(errors.New("a number is too long"))
	return 0
}

func (c *cursor) byte() byte {
	if b := c.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (c *cursor) bytes(n uint32) []byte {
	if uint64(n) > uint64(len(c.rest)) {
		c.fail(errEnd)
		return nil
	}
	b := c.rest[:n:n]
	c.rest = c.rest[n:]
	return b
}

func (c *cursor) text() string { return string(c.bytes(c.u32())) }

// constant reads the expression "i32.const N end".
func (c *cursor) constant() uint32 {
	if op := c.byte(); op != 0x41 {
		c.fail(fmt.Errorf("instruction %#x in a constant expression, want i32.const", op))
	}
	n := c.s32()
	if c.byte() != 0x0b {
		c.fail(errors.New("a constant does not end"))
	}
	return uint32(n)
}

// parseModule reads the module of the engine. It supports only the output of our own build;
// everything else is an error.
func parseModule(b []byte) (*module, error) {
	if !bytes.HasPrefix(b, header) {
		return nil, errors.New("not a WebAssembly module")
	}
	m := &module{exported: map[string]uint32{}}
	c := &cursor{rest: b[len(header):]}
	for len(c.rest) > 0 && c.err == nil {
		s := section{id: c.byte()}
		s.bytes = c.bytes(c.u32())
		if c.err == nil {
			c.err = m.section(s)
		}
		m.sections = append(m.sections, s)
	}
	return m, c.err
}

func (m *module) section(s section) error {
	c := &cursor{rest: s.bytes}
	read := map[byte]func(*cursor){secImport: m.readImport, secGlobal: m.readGlobal, secExport: m.readExport, secData: m.readData}[s.id]
	if read == nil {
		return nil
	}
	for n := c.u32(); n > 0 && c.err == nil; n-- {
		read(c)
	}
	if c.err == nil && len(c.rest) > 0 {
		c.fail(fmt.Errorf("section %d is longer than its content", s.id))
	}
	return c.err
}

func (m *module) readImport(c *cursor) {
	im := imported{module: c.text(), name: c.text()}
	if kind := c.byte(); kind != 0 {
		c.fail(fmt.Errorf("import %q is not a function", im.name))
	}
	im.rest = binary.AppendUvarint([]byte{0}, uint64(c.u32()))
	m.imports = append(m.imports, im)
}

func (m *module) readGlobal(c *cursor) {
	c.bytes(2) // type and mutability
	m.globals = append(m.globals, c.constant())
}

func (m *module) readExport(c *cursor) {
	name, kind, n := c.text(), c.byte(), c.u32()
	if kind == 3 {
		m.exported[name] = n
	}
}

func (m *module) readData(c *cursor) {
	if mode := c.u32(); mode != 0 {
		c.fail(fmt.Errorf("a data segment is of mode %d, want an active one", mode))
	}
	at := c.constant()
	m.data = append(m.data, segment{at: at, bytes: c.bytes(c.u32())})
}

// bytes returns the module with the changed imports and data.
func (m *module) bytes() []byte {
	out := bytes.Clone(header)
	for _, s := range m.sections {
		content := s.bytes
		switch s.id {
		case secImport:
			content = binary.AppendUvarint(nil, uint64(len(m.imports)))
			for _, im := range m.imports {
				content = append(appendText(appendText(content, im.module), im.name), im.rest...)
			}
		case secData:
			content = binary.AppendUvarint(nil, uint64(len(m.data)))
			for _, d := range m.data {
				content = append(content, 0, 0x41)
				content = append(appendSigned(content, int32(d.at)), 0x0b)
				content = append(binary.AppendUvarint(content, uint64(len(d.bytes))), d.bytes...)
			}
		case secDataCount:
			content = binary.AppendUvarint(nil, uint64(len(m.data)))
		}
		out = append(binary.AppendUvarint(append(out, s.id), uint64(len(content))), content...)
	}
	return out
}

func appendText(to []byte, s string) []byte {
	return append(binary.AppendUvarint(to, uint64(len(s))), s...)
}

// appendSigned encodes an operand of i32.const.
func appendSigned(to []byte, n int32) []byte {
	for {
		b := byte(n & 0x7f)
		n >>= 7
		if (n == 0 && b&0x40 == 0) || (n == -1 && b&0x40 != 0) {
			return append(to, b)
		}
		to = append(to, b|0x80)
	}
}
