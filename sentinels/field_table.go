package sentinels

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/sentinels/reference"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// A field is one key of a JSON object of the format: a row of [format].
type field[T any] struct {
	name    string
	aliases []string // accepted on input
	doc     string   // for the schema and FORMAT.md
	value   string   // what values it takes, for FORMAT.md
	example string   // a valid value that is not the default, in JSON
	hidden  bool     // accepted, but not suggested in hints
	missing string   // the problem of an object without the key; "" if it is optional
	into    string   // the key under which the stored form has the value, if it is not name

	// Of loops and triggers.
	of        []string // types of the object that have the key; nil: all
	elsewhere string   // hint for a key of another type

	// Of steps.
	behindOwn   bool // written after the fields of the type
	replaceable bool // a type may define a field with this name, which replaces the common one

	anyValue bool // takes null like any other value
	nullable bool // null is the same as a missing key

	schema any // a JSON Schema, or a func() any that returns one
	decode func(d *decoder, n *node, dst *T)
	encode func(src *T) json.RawMessage // a nil result omits the key; a nil func: read only
}

// needed is the problem of a loop or trigger without a key that its type needs.
const needed = "needed"

// text returns the documentation, with the types that have the field.
func (f *field[T]) text() string {
	if f.of == nil {
		return f.doc
	}
	return strings.Join(f.of, ", ") + ": " + f.doc
}

// has reports whether an object of a type has the field.
func (f *field[T]) has(typ string) bool { return f.of == nil || slices.Contains(f.of, typ) }

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
			d.unknownKey(m, []string{kindOf(dst)}, known, hidden...)
			continue
		}
		if f.nullable && m.Value.Kind == 'n' {
			d.add(m.Value, KindWarning, "", "is null and is dropped")
			continue
		}
		if d.recordKey(seen, f.name, m) {
			f.decode(d, m.Value, dst)
		}
	}
	return seen
}

// kindOf returns what the object of a table is, as in otherWords.
func kindOf(dst any) string {
	switch dst.(type) {
	case *fileDefinition:
		return inDefinition
	case *Loop:
		return inLoop
	case *Safety:
		return "safety"
	case *RetryPolicy:
		return inRetry
	case *OnError:
		return inOnError
	}
	return ""
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
		properties[t[i].name] = documented(t[i].schema, t[i].text())
		for _, alias := range t[i].aliases {
			properties[alias] = documented(t[i].schema, "Another name of "+t[i].name+".")
		}
	}
}

// objectSchema returns the JSON Schema of the object.
func (t table[T]) objectSchema() map[string]any {
	properties := make(map[string]any, len(t))
	t.schemas(properties)
	s := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	var names []string
	for i := range t {
		switch f := &t[i]; {
		case f.missing == "" || f.of != nil:
		case f.aliases == nil:
			names = append(names, f.name)
		default:
			s["allOf"] = []any{anyRequired(append([]string{f.name}, f.aliases...)...)}
		}
	}
	if names != nil {
		s["required"] = names
	}
	return s
}

// reportMissing reports required keys that an object does not have; typ is its type, if
// it has one, and kind what it is in a message.
func (t table[T]) reportMissing(d *decoder, n *node, seen map[string]member, kind, typ string) {
	for i := range t {
		f := &t[i]
		if _, given := seen[f.name]; given || f.missing == "" || !f.has(typ) {
			continue
		}
		if f.missing == needed {
			d.add(n, KindMissing, "", "a %s of type %q needs %q", kind, typ, f.name)
			continue
		}
		d.add(n, KindMissing, oneOf(f.schema), "%s", f.missing)
	}
}

// oneOf returns the hint for a missing key with a list of choices.
func oneOf(schema any) string {
	s, _ := schema.(map[string]any)
	if list, ok := s["enum"].([]string); ok {
		return "one of " + quotedList(list, " or ")
	}
	return ""
}

// others returns the names that a text may have for the key of a stored value: keys
// whose value is merged into it, which have precedence, and aliases.
func (t table[T]) others(name string) (names []string) {
	for i := range t {
		if t[i].into == name {
			names = append(names, t[i].name)
		}
	}
	if f := t.find(name); f != nil && f.name == name {
		names = append(names, f.aliases...)
	}
	return names
}

// otherNames returns the names that a text may have for a key of any object of the
// format.
func otherNames(name string) []string {
	return slices.Concat(format.definition.others(name), format.step.others(name), format.loop.others(name), format.trigger.others(name))
}

// documented returns a copy of a schema with a description.
func documented(schema any, doc string) any {
	out := map[string]any{"description": doc}
	if create, ok := schema.(func() any); ok {
		schema = create()
	}
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
	return field[T]{name: name, aliases: aliases, doc: doc, value: "text", example: `"some text"`, schema: map[string]any{"type": "string"},
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
	return field[T]{name: name, doc: doc, value: fmt.Sprintf("whole number from %d", least), example: "7", schema: map[string]any{"type": "integer", "minimum": least},
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

// durationField is for milliseconds, which a text such as "5m" means too; 0 is omitted when
// written.
func durationField[T any, N ~int | ~int64](name, doc string, least N, at func(*T) *N) field[T] {
	f := numberField(name, doc, least, at)
	f.value = fmt.Sprintf("milliseconds from %d, or a text such as `\"5m\"`", least)
	f.schema = func() any {
		return orDuration(map[string]any{"type": "integer", "minimum": least})
	}
	integer := f.decode
	f.decode = func(d *decoder, n *node, dst *T) {
		if asDuration(n); n.Kind == '"' && !reference.Contains(n.Text) {
			d.add(n, KindValue, durationHint(n.Text), "is %q, want milliseconds or a duration", textcut.Mark(n.Text, maxProblemText))
			return
		}
		integer(d, n, dst)
	}
	return f
}

// flagField is for booleans; false is omitted when written.
func flagField[T any](name, doc string, at func(*T) *bool) field[T] {
	return field[T]{name: name, doc: doc, value: "boolean", example: "true", schema: map[string]any{"type": "boolean"},
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
func choiceField[T any, S ~string](name, doc string, list []string, at func(*T) *S) field[T] {
	f := textField(name, doc, at)
	f.value, f.example = choices(list), `"`+list[len(list)-1]+`"`
	f.schema = map[string]any{"type": "string", "enum": list}
	f.decode = func(d *decoder, n *node, dst *T) {
		if s, ok := d.choice(n, list); ok {
			*at(dst) = S(s)
		}
	}
	return f
}

// listField is for lists of text; an empty one is omitted when written.
func listField[T any](name, doc string, at func(*T) *[]string) field[T] {
	return field[T]{name: name, doc: doc, value: "list of text", example: `["some text"]`,
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
func objectField[T, U any](name, doc, example string, inner *table[U], at func(*T) *U) field[T] {
	return field[T]{name: name, doc: doc, value: "object", example: example, schema: func() any { return inner.objectSchema() },
		decode: func(d *decoder, n *node, dst *T) { inner.read(d, n, at(dst)) },
		encode: func(src *T) json.RawMessage {
			if raw := inner.encode(at(src)); len(raw) > 2 {
				return raw
			}
			return nil
		}}
}

// idField reads a slug. An invalid one is kept until the end of decoding, so that it
// is not also reported as a missing name.
func idField(name, doc string, at func(*fileDefinition) *ID) field[fileDefinition] {
	f := textField(name, doc, at)
	f.schema, f.value, f.example = idSchema, "slug `"+idPattern+"`", `"some-id"`
	f.decode = func(d *decoder, n *node, dst *fileDefinition) {
		text, ok := d.nonEmptyText(n)
		if !ok {
			return
		}
		if id := ID(text); !id.Valid() {
			d.add(n, KindValue, fmt.Sprintf("for example %q", Slug(text)), "invalid id %q: want lower-case letters, digits, - and _, at most %d", text, maxName)
		}
		if RunID(text).WellFormed() {
			d.add(n, KindValue, fmt.Sprintf("for example %q", Slug(text)), "invalid id %q: it has the form of a run's id", text)
		}
		*at(dst) = ID(text)
	}
	return f
}

// extraField stores a key as written, so that writing a file back does not lose the
// data of other tools.
func extraField(name string) field[fileDefinition] {
	return field[fileDefinition]{name: name, hidden: true, anyValue: true, doc: "Stored, but not used by runs.", value: "any", example: `"data"`, schema: true,
		decode: func(d *decoder, n *node, dst *fileDefinition) {
			if dst.Extra == nil {
				dst.Extra = make(map[string]json.RawMessage)
			}
			dst.Extra[name] = n.Canonical()
		},
		encode: func(src *fileDefinition) json.RawMessage { return src.Extra[name] }}
}

// statisticField accepts a key of an exported entity that is computed from the runs, and
// does not store it.
func statisticField(name string) field[fileDefinition] {
	return field[fileDefinition]{name: name, hidden: true, anyValue: true, doc: "Statistics in an exported entity; not stored.", value: "any", example: "1", schema: true,
		decode: func(*decoder, *node, *fileDefinition) {}}
}

// entityField accepts a key that only entities of other programs have, and drops it with a
// warning.
func entityField(name, hint string) field[fileDefinition] {
	return field[fileDefinition]{name: name, hidden: true, doc: "Of an entity of another program; dropped with a warning.", value: "any", example: "1", schema: true,
		decode: func(d *decoder, n *node, _ *fileDefinition) {
			d.add(n, KindWarning, hint, "is not part of a definition and is dropped")
		}}
}

// The functions below change one property of a row.

// inputOnly is for a field that is read but not written, because its value is merged
// into another one.
func inputOnly[T any](into string, f field[T]) field[T] { f.into, f.encode = into, nil; return f }

func example[T any](text string, f field[T]) field[T] { f.example = text; return f }

func hidden[T any](f field[T]) field[T] { f.hidden = true; return f }

func required[T any](missing string, f field[T]) field[T] { f.missing = missing; return f }

func only[T any](of []string, f field[T]) field[T] { f.of = of; return f }

func behindOwn[T any](f field[T]) field[T] { f.behindOwn = true; return f }

func typeMayReplace[T any](f field[T]) field[T] { f.replaceable = true; return f }

// words returns choices as strings.
func words[S ~string](list ...S) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = string(s)
	}
	return out
}

// choices returns a list of choices as FORMAT.md writes it.
func choices(list []string) string { return "`" + strings.Join(list, "` `") + "`" }

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

// stepsField is a list of steps that may be missing.
func stepsField[T any](name, doc string, at func(*T) *[]Step) field[T] {
	return field[T]{name: name, doc: doc, value: "list of steps (F3)", example: `[{"type": "x"}]`, schema: func() any { return stepsSchema() },
		decode: func(d *decoder, n *node, dst *T) {
			if steps := d.steps(n); len(steps) > 0 {
				*at(dst) = steps
			}
		},
		encode: func(src *T) json.RawMessage {
			if len(*at(src)) == 0 {
				return nil
			}
			return encodeSteps(*at(src))
		}}
}

// retryCondition is a condition on the error of an attempt.
func retryCondition(name, doc, example string, at func(*RetryPolicy) *string) field[RetryPolicy] {
	return field[RetryPolicy]{name: name, doc: doc, value: "condition", example: example, schema: conditionSchema,
		decode: func(d *decoder, n *node, dst *RetryPolicy) { *at(dst), _ = d.expression(n) },
		encode: textField("", "", at).encode}
}

// onErrorField is an action after an error, or {"retry": ...}.
func onErrorField[T any](doc string, at func(*T) *OnError) field[T] {
	return field[T]{name: "onError", doc: doc, value: choices(errorActions) + ", or `{\"retry\": ...}`", example: `"skip"`,
		schema: func() any {
			return map[string]any{"anyOf": []any{map[string]any{"enum": errorActions}, refSchema("onError")}}
		},
		decode: func(d *decoder, n *node, dst *T) { d.onError(n, at(dst)) },
		encode: func(src *T) json.RawMessage { return encodeOnError(at(src)) }}
}
