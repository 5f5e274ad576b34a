package sdk

import (
	"strconv"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Handles, clause A3.4 of ABI.md: a large value of the input, or of an answer, is the handle of a
// block in the host, such as @s64. It is copied and parsed when the step reads it, and most steps pass
// it on, as the same handle.

// handle reads a handle. Its letter is the kind of the value.
func (p *parser) handle() (Value, error) {
	start := p.pos
	p.pos++ // @
	kind := KindAbsent
	if p.pos < len(p.text) {
		switch p.text[p.pos] {
		case abi.HandleString:
			kind = KindString
		case abi.HandleList:
			kind = KindList
		case abi.HandleObject:
			kind = KindObject
		}
	}
	p.pos++
	if kind == KindAbsent || !p.digits() {
		return Value{}, p.fail("expected a handle")
	}
	return Value{&node{kind: kind, handle: true, text: p.text[start:p.pos]}}, nil
}

// read returns the node of the value of a handle. It panics if the value is not one for [Parse], which is then
// the error of the step.
//
//go:noinline
func (n *node) read() *node {
	if n.items == nil {
		at, _ := strconv.ParseUint(n.text[len("@s"):], 10, 64) // digits
		v, err := Parse(load(at))
		if err != nil {
			panic("value of the host: " + err.Error())
		}
		n.items = []Value{v}
	}
	return n.items[0].n
}
