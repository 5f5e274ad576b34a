package strictjson

import (
	"bytes"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// EachMember calls f for the members of an object, in order, until f returns false.
// name is the key as written, with its quotes; both are parts of object. It builds no
// tree, so that it suits values of any size. An object that is not valid JSON ends the
// calls at the mistake.
func EachMember(object []byte, f func(name, value []byte) bool) {
	c := NewCursor(object)
	defer c.Close()
	if c.Kind() != '{' {
		return
	}
	for c.Enter(); c.Kind() != 0; {
		name, value := c.Next(), c.Next()
		if value == nil || !f(name, value) {
			return
		}
	}
}

// EachItem calls f for the items of an array, as [EachMember].
func EachItem(array []byte, f func(value []byte) bool) {
	c := NewCursor(array)
	defer c.Close()
	if c.Kind() != '[' {
		return
	}
	for c.Enter(); c.Kind() != 0; {
		if value := c.Next(); value == nil || !f(value) {
			return
		}
	}
}

// A Cursor reads parts of a valid value in one pass, from its start. Within an object,
// names and values come in turns. At a mistake it is at its end: Kind is 0, Next is nil.
type Cursor struct {
	text   []byte
	in     bytes.Buffer
	d      jsontext.Decoder
	failed bool
}

// cursors keeps decoders, because one is several times larger than most values.
var cursors = sync.Pool{New: func() any { return new(Cursor) }}

// maxKept is the length in bytes of a text that an unused decoder may keep.
const maxKept = 16 << 10

// walking accepts what [Check] refuses but encoding/json reads.
var walking = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// NewCursor returns a cursor before a value, which must not change until it is closed.
func NewCursor(text []byte) *Cursor {
	c := cursors.Get().(*Cursor)
	c.text, c.in, c.failed = text, *bytes.NewBuffer(text), false
	c.d.Reset(&c.in, walking)
	return c
}

// Close releases the cursor, which must not be used after that. The parts that it
// returned remain valid.
func (c *Cursor) Close() {
	if len(c.text) > maxKept {
		return // the decoder would keep the text in memory
	}
	cursors.Put(c)
}

// Kind returns the first byte of the next value or name, '0' for every number, and 0 at
// the end of the object, the array or the text.
func (c *Cursor) Kind() byte {
	if c.failed {
		return 0
	}
	if kind := c.d.PeekKind(); kind != '}' && kind != ']' {
		return byte(kind)
	}
	return 0
}

// Enter goes into the object or array that is next.
func (c *Cursor) Enter() { c.token() }

// Leave skips the rest of the object or array that was entered last, and its end.
func (c *Cursor) Leave() {
	for c.Kind() != 0 {
		c.Next()
	}
	c.token()
}

func (c *Cursor) token() {
	if !c.failed {
		_, err := c.d.ReadToken()
		c.failed = err != nil
	}
}

// Rest returns the text after what has been read.
func (c *Cursor) Rest() []byte { return c.text[c.d.InputOffset():] }

// Next returns the next value or name as written, without the space around it. It is a
// part of the text.
func (c *Cursor) Next() []byte {
	if c.failed {
		return nil
	}
	read, err := c.d.ReadValue()
	if c.failed = err != nil; c.failed {
		return nil
	}
	end := int(c.d.InputOffset())
	return c.text[end-len(read) : end : end]
}
