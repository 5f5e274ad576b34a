package openai

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/llm/wire"
)

// A received message is that of an answer, as far as it has come.
type received struct {
	text, refusal strings.Builder
	parts         *wire.Pieces // the content, if it is a list of parts
	calls         []call
	index         map[int64]int // the protocol's index to ours
	rest          *wire.Pieces  // what else it has, such as thinking
	size          int
}

type call struct {
	id, name, kind string
	arguments      strings.Builder
	function, rest *wire.Pieces // what else it has, such as a signature
}

// add adds a piece and returns the text in it. ok is false if there are too many calls.
func (m *received) add(d delta) (text string, ok bool) {
	text = m.content(d.Content)
	m.refusal.WriteString(string(d.Refusal))
	m.size += len(d.Content) + len(d.Refusal) + keep(&m.rest, d.Rest)
	for _, part := range d.ToolCalls {
		if !m.call(part) {
			return "", false
		}
	}
	return text, true
}

// keep adds members to those that a message or a call has, and returns their size.
func keep(have **wire.Pieces, members rest) (size int) {
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if *have == nil {
			*have = wire.NewPieces()
		}
		(*have).Add(name, members[name])
		size += len(members[name])
	}
	return size
}

// content adds content and returns its text. Mistral sends the thinking of some models as
// parts of a list, and their text as another part or as a plain text behind it.
func (m *received) content(raw json.RawMessage) string {
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	text, isText := wire.ReadText(raw)
	list, isList := wire.ReadList(raw)
	switch {
	case isList:
		if m.parts == nil {
			m.parts = wire.NewPieces()
			if m.text.Len() > 0 {
				m.parts.Add("content", textPart(m.text.String()))
			}
		}
		m.parts.Add("content", raw)
		text = textOf(list, "text", "output_text")
	case !isText:
		text = string(raw) // a number or an object, of servers that do not keep to the protocol
	}
	if !isList && m.parts != nil && text != "" {
		m.parts.Add("content", textPart(text))
	}
	m.text.WriteString(text)
	return text
}

func textPart(text string) json.RawMessage {
	return wire.List([]json.RawMessage{wire.Object{{Name: "type", Value: wire.Quote("text")}, {Name: "text", Value: wire.Quote(text)}}.JSON()})
}

// textOf returns the texts of those parts of a list that have one of the types.
func textOf(list []json.RawMessage, types ...string) string {
	var b strings.Builder
	for _, item := range list {
		o, _ := wire.ReadObject(item)
		kind, _ := wire.ReadText(o.Get("type"))
		if !slices.Contains(types, kind) {
			continue
		}
		for _, name := range []string{"text", "thinking", "summary"} {
			text, _ := wire.ReadText(o.Get(name))
			if inner, ok := wire.ReadList(o.Get(name)); ok {
				text = textOf(inner, "text")
			}
			b.WriteString(text)
		}
	}
	return b.String()
}

// call adds a piece of a tool call and reports whether there may be as many. Pieces
// belong to a call by their index; some servers reuse an index with another id.
func (m *received) call(part callPart) bool {
	if m.index == nil {
		m.index = map[int64]int{}
	}
	id, name, arguments := string(part.ID), string(part.Function.Name), string(part.Function.Arguments)
	at, ok := m.index[int64(part.Index)]
	if !ok || id != "" && m.calls[at].id != "" && id != m.calls[at].id {
		if at = len(m.calls); at == wire.MaxCalls {
			return false
		}
		m.index[int64(part.Index)] = at
		m.calls = append(m.calls, call{kind: "function"})
	}
	c := &m.calls[at]
	if id != "" {
		c.id = id
	}
	if part.Type != "" {
		c.kind = string(part.Type)
	}
	if c.name != name { // repeated in each piece by some
		c.name += name
	}
	c.arguments.WriteString(arguments)
	m.size += len(name) + len(arguments) + keep(&c.function, part.Function.Rest) + keep(&c.rest, part.Rest)
	return true
}

// reasoning returns what the model thought. Servers that send it under two names send the
// same twice.
func (m *received) reasoning() string {
	if m.rest != nil {
		for _, name := range []string{"reasoning_content", "reasoning", "thinking"} {
			if text := m.rest.Text(name); text != "" {
				return text
			}
		}
		if list, ok := wire.ReadList(m.rest.Get("reasoning_details")); ok {
			if text := textOf(list, "reasoning.text", "reasoning.summary"); text != "" {
				return text
			}
		}
	}
	if m.parts != nil {
		list, _ := wire.ReadList(m.parts.Get("content"))
		return textOf(list, "thinking", "reasoning")
	}
	return ""
}

// json returns the message as the server would have sent it in one piece.
func (m *received) json() json.RawMessage {
	o := wire.Object{{Name: "role", Value: wire.Quote("assistant")}, {Name: "content", Value: wire.Quote(m.text.String())}}
	switch {
	case m.parts != nil:
		o[1].Value = m.parts.Get("content")
	case m.text.Len() == 0 && len(m.calls) > 0:
		o[1].Value = json.RawMessage("null") // also where the first piece has an empty text
	}
	if m.refusal.Len() > 0 {
		o.Set("refusal", wire.Quote(m.refusal.String()))
	}
	o = append(o, members(m.rest)...)
	var calls []json.RawMessage
	for i := range m.calls {
		c := &m.calls[i]
		function := wire.Object{{Name: "name", Value: wire.Quote(c.name)}, {Name: "arguments", Value: wire.Quote(c.arguments.String())}}
		one := wire.Object{{Name: "id", Value: wire.Quote(c.id)}, {Name: "type", Value: wire.Quote(c.kind)},
			{Name: "function", Value: append(function, members(c.function)...).JSON()}}
		calls = append(calls, append(one, members(c.rest)...).JSON())
	}
	if len(calls) > 0 {
		o.Set("tool_calls", wire.List(calls))
	}
	return o.JSON()
}

// plain reports whether the message has nothing beside its text and its calls.
func (m *received) plain() bool {
	return m.rest == nil && m.parts == nil && m.refusal.Len() == 0 &&
		!slices.ContainsFunc(m.calls, func(c call) bool { return c.rest != nil || c.function != nil || c.kind != "function" })
}

func members(p *wire.Pieces) wire.Object {
	if p == nil {
		return nil
	}
	return p.Object()
}
