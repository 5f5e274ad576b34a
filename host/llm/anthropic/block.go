package anthropic

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/llm/wire"
)

// A block is one content block as far as it has come: text, thinking, a tool call, or what the
// provider executes itself.
type block struct {
	kind  string
	start wire.Object
	text  strings.Builder // of a block of text
	input strings.Builder // of a call
	rest  *wire.Pieces    // what deltas add beside that, such as thinking and its signature
}

// newBlock returns a block as it began, or a whole one.
func newBlock(raw json.RawMessage) *block {
	b := &block{}
	b.start, _ = wire.ReadObject(raw)
	b.kind, _ = wire.ReadText(b.start.Get("type"))
	if b.kind == "text" {
		text, _ := wire.ReadText(b.start.Get("text"))
		b.text.WriteString(text)
	}
	return b
}

// add adds a delta and returns its size.
func (b *block) add(text, input string, rest map[string]json.RawMessage) (size int) {
	b.text.WriteString(text)
	b.input.WriteString(input)
	size = len(text) + len(input)
	for _, name := range slices.Sorted(maps.Keys(rest)) {
		if b.rest == nil {
			b.rest = wire.NewPieces("signature")
			for _, m := range b.start {
				b.rest.Add(m.Name, m.Value)
			}
		}
		value := rest[name]
		if name == "citation" { // one of the list that the block has
			name, value = "citations", wire.List([]json.RawMessage{value})
		}
		b.rest.Add(name, value)
		size += len(value)
	}
	return size
}

// call returns the call that the block is.
func (b *block) call() wire.Call {
	id, _ := wire.ReadText(b.start.Get("id"))
	name, _ := wire.ReadText(b.start.Get("name"))
	arguments := b.input.String()
	if arguments == "" {
		arguments = string(b.start.Get("input"))
	}
	return wire.Call{ID: id, Name: name, Arguments: arguments}
}

// thinking returns the text of a block of thinking, "" if its provider does not show it.
func (b *block) thinking() string {
	if b.rest != nil {
		return b.rest.Text("thinking")
	}
	text, _ := wire.ReadText(b.start.Get("thinking"))
	return text
}

// plain reports whether the block is a text at the begin of a message or a call, with nothing else.
func (b *block) plain(first bool) bool {
	known := b.start.Without("type", "text")
	if b.kind == "tool_use" {
		known = b.start.Without("type", "id", "name", "input")
	}
	return b.rest == nil && len(known) == 0 && (b.kind == "text" && first || b.kind == "tool_use")
}

// json returns the block as the server would have sent it in one piece.
func (b *block) json() json.RawMessage {
	o := b.start
	if b.rest != nil {
		o = b.rest.Object()
	}
	o = slices.Clone(o)
	switch {
	case b.kind == "text":
		o.Set("text", wire.Quote(b.text.String()))
	case b.input.Len() > 0:
		o.Set("input", inputOf(b.input.String()))
	}
	return o.JSON()
}

// inputOf returns arguments as the object that the protocol wants. A text that is none, such
// as one that was cut off, is kept under a name of its own.
func inputOf(text string) json.RawMessage {
	if _, ok := wire.ReadObject([]byte(text)); ok && json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return wire.Object{{Name: "arguments", Value: wire.Quote(text)}}.JSON()
}
