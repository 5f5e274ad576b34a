package wasm

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// Handles of values, ABI clause A3.4. A guest that takes handles gets a large value as the handle of a
// block, and a handle in its requests and its output is the value again. So a value that a step passes
// on is neither copied into the guest, nor parsed and written there, which takes a hundred times as
// long as a copy in the host. The engine gets whole texts: records, digests and limits are the same
// for all guests.

// largeParts are the values that guests get handles of. A smaller one costs the guest less than the host saves.
var largeParts = strictjson.LargeLimits{Bytes: 16 << 10, Members: 64, Inline: 64 << 10, Depth: MaxHandleDepth}

// MaxHandleDepth is the number of arrays and objects within each other that a value may have: a
// guest must be able to parse it, and [sdk.MaxDepth] is more.
const MaxHandleDepth = 200

// maxHandleBytes limits the bytes of the input and the values of a call. Their blocks are freed at its
// end only, so a guest with many large answers gets the later ones as texts.
const maxHandleBytes = maxInput

// LargeParts returns the values in a valid JSON text that a guest gets handles of.
func LargeParts(text []byte) []strictjson.LargePart {
	if len(text) < largeParts.Bytes {
		return nil
	}
	return strictjson.LargeParts(text, largeParts)
}

// giveHandles returns a text for the guest, in which large values are the handles of their blocks. The text
// must be valid JSON, and is not changed afterwards.
func (c *call) giveHandles(text []byte) ([]byte, error) {
	if !c.handles {
		return text, nil
	}
	var out []byte
	done := 0
	for _, p := range LargeParts(text) {
		out = append(out, text[done:p.From]...)
		var err error
		if out, err = c.appendHandle(out, text[p.From:p.To]); err != nil {
			return nil, err
		}
		done = p.To
	}
	if done == 0 {
		return text, nil
	}
	return append(out, text[done:]...), nil
}

// giveInput is giveHandles for a text and the values that belong into it.
func (c *call) giveInput(text []byte, large []LargeValue) ([]byte, error) {
	if len(large) == 0 || !c.handles || len(text) >= largeParts.Bytes { // such as a state, which has large values of its own
		return c.giveHandles(joinLarge(text, large))
	}
	var out []byte
	done := 0
	for _, v := range large {
		var err error
		if out, err = c.appendHandle(append(out, text[done:v.At]...), v.Value); err != nil {
			return nil, err
		}
		done = v.At
	}
	return append(out, text[done:]...), nil
}

// joinLarge returns a text with the values that belong into it.
func joinLarge(text []byte, large []LargeValue) []byte {
	if len(large) == 0 {
		return text
	}
	size := len(text)
	for _, v := range large {
		size += len(v.Value)
	}
	out, done := make([]byte, 0, size), 0
	for _, v := range large {
		out = append(append(out, text[done:v.At]...), v.Value...)
		done = v.At
	}
	return append(out, text[done:]...)
}

// appendHandle appends a handle of a value to a text for the guest, or the value itself if the guest can have no handle
// of it.
func (c *call) appendHandle(out, value []byte) ([]byte, error) {
	// What is wrong with a text that is not UTF-8 is found where it is decoded.
	if c.handleBytes+len(value) > maxHandleBytes || !utf8.Valid(value) {
		return append(out, value...), nil
	}
	handle, err := c.inst.callMemory.Write(value)
	if err != nil {
		return nil, err
	}
	if c.byHandle == nil {
		c.byHandle = map[uint64][]byte{}
	}
	// The value that a handle stands for is not that of the block, which the guest can write to.
	c.byHandle[handle], c.handleBytes = value, c.handleBytes+len(value)
	return strconv.AppendUint(append(out, '@', handleLetter(value[0])), handle, 10), nil
}

// handleLetter returns the letter for a value that begins with a byte.
func handleLetter(first byte) byte {
	switch first {
	case '[':
		return abi.HandleList
	case '{':
		return abi.HandleObject
	}
	return abi.HandleString
}

// A guestText is a text of the guest with the values that it has the handles of.
type guestText struct {
	text    []byte
	handles []handlePart
	size    int // of the whole text, in bytes
}

// A handlePart is a handle in the text of a guest, and the value that it stands for.
type handlePart struct {
	from, to int
	value    []byte
}

// handlesIn returns a text of the guest with its values. What is not the handle of a value
// stays in the text, which is then not JSON.
func (c *call) handlesIn(text []byte) guestText {
	t := guestText{text: text, size: len(text)}
	if len(c.byHandle) == 0 || bytes.IndexByte(text, '@') < 0 {
		return t
	}
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = strictjson.SkipString(text, i) - 1
		case '@':
			from, handle := i, uint64(0)
			for i += 2; i < len(text) && text[i] >= '0' && text[i] <= '9' && handle < 1<<48; i++ {
				handle = handle*10 + uint64(text[i]-'0')
			}
			if value := c.byHandle[handle]; value != nil {
				t.handles = append(t.handles, handlePart{from, i, value})
				t.size += len(value) - (i - from)
			}
			i--
		}
	}
	return t
}

// whole returns the whole text.
func (t *guestText) whole() []byte {
	if len(t.handles) == 0 {
		return t.text
	}
	text, done := make([]byte, 0, t.size), 0
	for _, p := range t.handles {
		text = append(append(text, t.text[done:p.from]...), p.value...)
		done = p.to
	}
	return append(text, t.text[done:]...)
}

// outline returns the text with a string in place of each value. Where the guest itself wrote such a
// string, as an error can have shown it one, the outline is the whole text.
func (t *guestText) outline() *Outline {
	if len(t.handles) == 0 || bytes.Contains(t.text, []byte(placeholder)) {
		return &Outline{Text: t.whole()}
	}
	o := new(Outline)
	done := 0
	for i, p := range t.handles {
		o.Text = append(append(append(o.Text, t.text[done:p.from]...), '"'), placeholder...)
		o.Text = append(strconv.AppendInt(o.Text, int64(i), 10), '"')
		o.values = append(o.values, p.value)
		done = p.to
	}
	o.Text = append(o.Text, t.text[done:]...)
	return o
}

// placeholder is the beginning of the strings in an outline. It is random, so that no text of a user
// has it.
var placeholder = "value:" + rand.Text() + ":"

// An Outline is a text with a short string in place of each large value. The values were JSON when
// they were passed to the guest, so only the outline needs to be checked and decoded.
type Outline struct {
	Text   []byte
	values [][]byte
}

// Insert returns a decoded part of the outline with its values.
func (o *Outline) Insert(part json.RawMessage) json.RawMessage {
	if o == nil {
		return part
	}
	mark := []byte(`"` + placeholder)
	var out []byte
	for rest := part; ; {
		at := bytes.Index(rest, mark)
		if at < 0 {
			if out == nil {
				return part
			}
			return append(out, rest...)
		}
		number, after, _ := bytes.Cut(rest[at+len(mark):], []byte{'"'})
		i, err := strconv.Atoi(string(number))
		if err != nil || i < 0 || i >= len(o.values) {
			return part // not an outline of this package
		}
		if at == 0 && len(after) == 0 && out == nil {
			return o.values[i]
		}
		if out == nil {
			out = make([]byte, 0, o.size(part))
		}
		out = append(append(out, rest[:at]...), o.values[i]...)
		rest = after
	}
}

// size returns a size in bytes that a part of the outline does not exceed with its values.
func (o *Outline) size(part json.RawMessage) int {
	size := len(part)
	for _, value := range o.values {
		size += len(value)
	}
	return size
}

type outlineKey struct{}

// OutlineOf returns the outline of the request of a [CallFunc] from its ctx, nil if no value of the
// request has a handle.
func OutlineOf(ctx context.Context) *Outline {
	o, _ := ctx.Value(outlineKey{}).(*Outline)
	return o
}
