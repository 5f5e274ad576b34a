package sentinels

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// A field is one key of a JSON object of the format. Decode, Encode and Schema use
// the same tables of fields, so that they cannot disagree.
type field[T any] struct {
	name    string
	aliases []string // accepted on input
	doc     string
	hidden  bool // accepted, but not suggested in hints
	schema  any
	decode  func(d *decoder, n *node, dst *T)
	encode  func(src *T) json.RawMessage // a nil result omits the key; a nil func: read only
}

type table[T any] []field[T]

// find returns the field with a name or alias, nil if there is none.
func (t table[T]) find(name string) *field[T] {
	for i := range t {
		if t[i].name == name || slices.Contains(t[i].aliases, name) {
			return &t[i]
		}
	}
	return nil
}

// names returns the names to offer in hints.
func (t table[T]) names() (known, hidden []string) {
	for i := range t {
		if t[i].hidden {
			hidden = append(hidden, t[i].name)
		} else {
			known = append(known, t[i].name)
		}
	}
	return known, hidden
}

// read decodes an object and returns its members by stored name, or nil if n is not
// an object.
func (t table[T]) read(d *decoder, n *node, dst *T) map[string]member {
	if !d.expect(n, '{', "an object") {
		return nil
	}
	seen := make(map[string]member, len(n.Members))
	for _, m := range n.Members {
		f := t.find(m.Name)
		if f == nil {
			known, hidden := t.names()
			d.unknownKey(m, known, hidden...)
			continue
		}
		if d.recordKey(seen, f.name, m) {
			f.decode(d, m.Value, dst)
		}
	}
	return seen
}

// write appends the members of the object that are set.
func (t table[T]) write(o *object, src *T) {
	for i := range t {
		if t[i].encode == nil {
			continue
		}
		if raw := t[i].encode(src); raw != nil {
			o.add(t[i].name, raw)
		}
	}
}

func (t table[T]) encode(src *T) json.RawMessage {
	var o object
	t.write(&o, src)
	return o.bytes()
}

// schemas adds the properties of the table to a schema's.
func (t table[T]) schemas(properties map[string]any) {
	for i := range t {
		properties[t[i].name] = documented(t[i].schema, t[i].doc)
		for _, alias := range t[i].aliases {
			properties[alias] = documented(t[i].schema, "Another name of "+t[i].name+".")
		}
	}
}

// objectSchema returns the JSON Schema of the object.
func (t table[T]) objectSchema(required ...string) map[string]any {
	properties := make(map[string]any, len(t))
	t.schemas(properties)
	s := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// documented returns a copy of a schema with a description.
func documented(schema any, doc string) any {
	out := map[string]any{"description": doc}
	if m, ok := schema.(map[string]any); ok {
		for k, v := range m {
			out[k] = v
		}
	}
	if doc == "" {
		delete(out, "description")
	}
	return out
}

// The constructors below cover the kinds of fields the format has.

// textField is for strings, and for string types such as ids. An empty string is the
// same as a missing key.
func textField[T any, S ~string](name, doc string, at func(*T) *S, aliases ...string) field[T] {
	return field[T]{name: name, aliases: aliases, doc: doc, schema: map[string]any{"type": "string"},
		decode: func(d *decoder, n *node, dst *T) {
			if s, ok := d.text(n); ok {
				*at(dst) = S(s)
			}
		},
		encode: func(src *T) json.RawMessage {
			if *at(src) == "" {
				return nil
			}
			return strictjson.AppendString(nil, string(*at(src)))
		}}
}

// numberField is for whole numbers of at least least; 0 is omitted when written.
func numberField[T any, N ~int | ~int64](name, doc string, least N, at func(*T) *N) field[T] {
	return field[T]{name: name, doc: doc, schema: map[string]any{"type": "integer", "minimum": least},
		decode: func(d *decoder, n *node, dst *T) {
			if i, ok := d.integer(n, int64(least)); ok {
				*at(dst) = N(i)
			}
		},
		encode: func(src *T) json.RawMessage {
			if *at(src) == 0 {
				return nil
			}
			return strconv.AppendInt(nil, int64(*at(src)), 10)
		}}
}

// flagField is for booleans; false is omitted when written.
func flagField[T any](name, doc string, at func(*T) *bool) field[T] {
	return field[T]{name: name, doc: doc, schema: map[string]any{"type": "boolean"},
		decode: func(d *decoder, n *node, dst *T) {
			if n.Kind == 't' || n.Kind == 'f' {
				*at(dst) = n.Kind == 't'
				return
			}
			d.wrongType(n, "a boolean")
		},
		encode: func(src *T) json.RawMessage {
			if !*at(src) {
				return nil
			}
			return json.RawMessage("true")
		}}
}

// choiceField is for one of a fixed list of words.
func choiceField[T any, S ~string](name, doc string, choices []string, at func(*T) *S) field[T] {
	f := textField(name, doc, at)
	f.schema = map[string]any{"type": "string", "enum": choices}
	f.decode = func(d *decoder, n *node, dst *T) {
		if s, ok := d.choice(n, choices); ok {
			*at(dst) = S(s)
		}
	}
	return f
}

// listField is for lists of text; an empty one is omitted when written.
func listField[T any](name, doc string, at func(*T) *[]string) field[T] {
	return field[T]{name: name, doc: doc,
		schema: map[string]any{"type": "array", "items": map[string]any{"type": "string"}},
		decode: func(d *decoder, n *node, dst *T) {
			if !d.expect(n, '[', "an array of strings") {
				return
			}
			for _, item := range n.Items {
				if s, ok := d.text(item); ok {
					*at(dst) = append(*at(dst), s)
				}
			}
		},
		encode: func(src *T) json.RawMessage {
			if len(*at(src)) == 0 {
				return nil
			}
			b := []byte{'['}
			for i, s := range *at(src) {
				if i > 0 {
					b = append(b, ',')
				}
				b = strictjson.AppendString(b, s)
			}
			return append(b, ']')
		}}
}

// objectField is for an object with a table of its own. An object in which no key is
// set is omitted when written.
func objectField[T, U any](name, doc string, inner table[U], at func(*T) *U) field[T] {
	return field[T]{name: name, doc: doc, schema: inner.objectSchema(),
		decode: func(d *decoder, n *node, dst *T) { inner.read(d, n, at(dst)) },
		encode: func(src *T) json.RawMessage {
			if raw := inner.encode(at(src)); len(raw) > 2 {
				return raw
			}
			return nil
		}}
}

// An object builds a JSON object, with the keys in the order of the calls of add.
type object struct{ b []byte }

func (o *object) add(name string, raw json.RawMessage) {
	if len(o.b) == 0 {
		o.b = append(o.b, '{')
	} else {
		o.b = append(o.b, ',')
	}
	o.b = append(strictjson.AppendString(o.b, name), ':')
	o.b = append(o.b, raw...)
}

func (o *object) bytes() json.RawMessage {
	if len(o.b) == 0 {
		return json.RawMessage("{}")
	}
	return append(o.b, '}')
}

// equalFold returns the choice that equals s, ignoring case.
func equalFold(s string, choices []string) (string, bool) {
	for _, c := range choices {
		if strings.EqualFold(s, c) {
			return c, true
		}
	}
	return "", false
}

// mergedInto are the keys whose values are merged into another field, with its path.
var mergedInto = map[string]string{"uniqueId": "id", "timeoutMs": "safety.timeoutMs", "maxIterations": "safety.maxIterations"}

// writtenAs are the aliases that a stored key may have in a file.
var writtenAs = map[string][]string{
	"steps": {"pipeline"}, "definition": {"pipeline"}, "check": {"if"}, "data": {"payload"}, "cronExpression": {"schedule", "cron"},
}

// otherNames returns the names that a text may have for a stored key, with precedence
// over that.
func otherNames(name string) []string {
	var names []string
	for key, into := range mergedInto {
		if into == name {
			names = append(names, key)
		}
	}
	return append(names, writtenAs[name]...)
}
