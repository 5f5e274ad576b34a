package wire

import (
	"encoding/json"
	"strings"
)

// Pieces is a JSON object that arrives in pieces: members of a message that a stream sends
// beside its text and calls, such as thinking and signatures, whether we know them or not.
type Pieces struct {
	names  []string
	values map[string]*piece
	texts  map[string]bool // names whose text grows, beside those of growing
}

// growing are the names of texts that arrive in parts. Of any other member the last value
// counts, since servers repeat ids, types and signatures.
var growing = map[string]bool{
	"content": true, "reasoning_content": true, "reasoning": true, "thinking": true, "text": true,
	"summary": true, "refusal": true, "arguments": true, "data": true, "partial_json": true,
}

// piece is a value so far: a text, an object, a list, or raw for any other.
type piece struct {
	text   *strings.Builder
	object *Pieces
	list   []*piece
	raw    json.RawMessage
}

// NewPieces returns an empty object. The texts of the given names grow, as those that are
// known to.
func NewPieces(texts ...string) *Pieces {
	p := &Pieces{values: map[string]*piece{}}
	for _, name := range texts {
		if p.texts == nil {
			p.texts = map[string]bool{}
		}
		p.texts[name] = true
	}
	return p
}

// Add adds a piece of a member. Null is nothing: in a stream it says that this piece has no
// such member.
func (p *Pieces) Add(name string, value json.RawMessage) {
	if isNull(value) {
		return
	}
	have := p.values[name]
	if have == nil {
		have = &piece{}
		p.names, p.values[name] = append(p.names, name), have
	}
	have.add(value, growing[name] || p.texts[name])
}

// AddAll adds the members of an object, and returns false if value is none.
func (p *Pieces) AddAll(value json.RawMessage) bool {
	o, ok := ReadObject(value)
	for _, m := range o {
		p.Add(m.Name, m.Value)
	}
	return ok
}

func (p *piece) add(value json.RawMessage, grows bool) {
	if text, ok := ReadText(value); ok && grows {
		if p.text == nil {
			*p = piece{text: &strings.Builder{}}
		}
		p.text.WriteString(text)
		return
	} else if ok && text == "" && p.raw != nil {
		return
	}
	if o, ok := ReadObject(value); ok {
		if p.object == nil {
			*p = piece{object: NewPieces()}
		}
		for _, m := range o {
			p.object.Add(m.Name, m.Value)
		}
		return
	}
	if items, ok := ReadList(value); ok {
		if p.list == nil {
			*p = piece{list: []*piece{}}
		}
		for _, item := range items {
			p.item(item)
		}
		return
	}
	*p = piece{raw: value}
}

// item adds an item of a list to the one that it continues, or behind all. It continues the one
// with the same index and type; without an index, a last one that is text of the same type.
func (p *piece) item(value json.RawMessage) {
	o, _ := ReadObject(value)
	for i := len(p.list) - 1; i >= 0 && o != nil; i-- {
		have := p.list[i].object
		if have == nil || have.raw("type") != string(o.Get("type")) || have.raw("index") != string(o.Get("index")) || have.id(o) {
			continue
		}
		last := i == len(p.list)-1
		if o.Get("index") != nil || last && (o.Get("text") != nil || o.Get("thinking") != nil) {
			p.list[i].add(value, false)
			return
		}
	}
	next := &piece{}
	next.add(value, false)
	p.list = append(p.list, next)
}

// raw returns the JSON of a member that is neither an object nor a list.
func (p *Pieces) raw(name string) string {
	if have := p.values[name]; have != nil {
		return string(have.raw)
	}
	return ""
}

// id reports whether an object has another id than this one.
func (p *Pieces) id(o Object) bool {
	id, have := string(o.Get("id")), p.raw("id")
	return id != "" && id != "null" && have != "" && id != have
}

// Get returns the value of a member, nil if there is none.
func (p *Pieces) Get(name string) json.RawMessage {
	if have := p.values[name]; have != nil {
		return have.json()
	}
	return nil
}

// Text returns the text of a member, "" if it is none.
func (p *Pieces) Text(name string) string {
	if have := p.values[name]; have != nil && have.text != nil {
		return have.text.String()
	}
	return ""
}

// Object returns the object so far, with its members in the order in which they began.
func (p *Pieces) Object() Object {
	o := make(Object, 0, len(p.names))
	for _, name := range p.names {
		o = append(o, Member{name, p.values[name].json()})
	}
	return o
}

func (p *piece) json() json.RawMessage {
	switch {
	case p.text != nil:
		return Quote(p.text.String())
	case p.object != nil:
		return p.object.Object().JSON()
	case p.list != nil:
		items := make([]json.RawMessage, len(p.list))
		for i, item := range p.list {
			items[i] = item.json()
		}
		return List(items)
	}
	return p.raw
}
