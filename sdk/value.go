package sdk

import "strconv"

// Kind is the type of a [Value].
type Kind uint8

// The kinds of values. Absent is the zero value: a field that is not given.
const (
	KindAbsent Kind = iota
	KindNull
	KindBool
	KindNumber
	KindString
	KindList
	KindObject
)

// A Value is one JSON value. Its zero value is absent; [Object] and [List] omit absent
// values, so that optional fields need no branches. Numbers keep their text, so that
// no digits are lost. Objects keep the order of their
// fields.
//
// # Concurrency
//
// A Value is immutable and may be used by several goroutines.
type Value struct {
	n *node // nil is absent
}

// A node is behind a pointer because guests copy values often, and code that copies
// structs is the largest part of a Go guest.
type node struct {
	kind   Kind
	raw    bool     // text is that of a string with its escapes, as it stands between quotes; see [parser.value]
	handle bool     // the value is still in a block of the host, see handle.go; text is its handle
	text   string   // of a string, number or bool
	keys   []string // of an object, beside items
	items  []Value  // of a list or an object; of a handle, once it is read, the value
}

// absent is the node of an absent value.
var absent node

func (v Value) node() *node {
	if v.n == nil {
		return &absent
	}
	if v.n.handle {
		return v.n.read()
	}
	return v.n
}

// str returns the text of a string.
//
//go:noinline
//go:noinline
func (n *node) str() string {
	if n.raw {
		return unescape(n.text)
	}
	return n.text
}

func scalar(kind Kind, text string) Value { return Value{&node{kind: kind, text: text}} }

// A Field is one member of an object.
type Field struct {
	Name  string
	Value Value
}

// F returns a Field.
func F(name string, v Value) Field { return Field{name, v} }

// Null returns JSON's null.
//
//go:noinline
func Null() Value { return scalar(KindNull, "") }

// Bool returns a boolean.
//
//go:noinline
func Bool(b bool) Value {
	if b {
		return scalar(KindBool, "true")
	}
	return scalar(KindBool, "false")
}

// Int returns a number.
func Int(n int64) Value { return scalar(KindNumber, strconv.FormatInt(n, 10)) }

// Float returns a number, or null for NaN and infinities, which JSON does not have.
func Float(f float64) Value {
	if f != f || f-f != 0 {
		return Null()
	}
	return scalar(KindNumber, strconv.FormatFloat(f, 'g', -1, 64))
}

// String returns a string. Bytes that are not UTF-8 are written as U+FFFD.
func String(s string) Value { return scalar(KindString, s) }

// Text returns a string, or an absent value for an empty one.
//
//go:noinline
func Text(s string) Value {
	if s == "" {
		return Value{}
	}
	return String(s)
}

// List returns a list of the values that are not absent.
func List(values ...Value) Value {
	items := make([]Value, 0, len(values))
	for _, v := range values {
		if v.Exists() {
			items = append(items, v)
		}
	}
	return Value{&node{kind: KindList, items: items}}
}

// Strings returns a list of strings, or an absent value for nil.
func Strings(list []string) Value {
	if list == nil {
		return Value{}
	}
	items := make([]Value, len(list))
	for i, s := range list {
		items[i] = String(s)
	}
	return Value{&node{kind: KindList, items: items}}
}

// Object returns an object of the fields whose value is not absent. Of two
// fields with the same name it uses the later one.
func Object(fields ...Field) Value {
	n := &node{kind: KindObject, keys: make([]string, 0, len(fields)), items: make([]Value, 0, len(fields))}
	var at map[string]int // where each key is, once there are many: comparing all of them would take quadratic time
	for _, f := range fields {
		if !f.Value.Exists() {
			continue
		}
		if len(n.keys) == indexed && at == nil {
			at = make(map[string]int, len(fields))
			for i, key := range n.keys {
				at[key] = i
			}
		}
		i, found := at[f.Name]
		if at == nil {
			i = n.find(f.Name)
			found = i >= 0
		}
		if found {
			n.items[i] = f.Value
			continue
		}
		if at != nil {
			at[f.Name] = len(n.keys)
		}
		n.keys = append(n.keys, f.Name)
		n.items = append(n.items, f.Value)
	}
	return Value{n}
}

// With returns the object with one field added or replaced. An absent value removes
// the field. If v is not an object, With returns a new one. It copies the object: [Object]
// makes one of many fields in less time.
func (v Value) With(name string, field Value) Value {
	n := &node{kind: KindObject, keys: make([]string, 0, v.Len()+1), items: make([]Value, 0, v.Len()+1)}
	add := func(key string, item Value) {
		if item.Exists() {
			n.keys, n.items = append(n.keys, key), append(n.items, item)
		}
	}
	for key, item := range v.Fields() {
		if key == name {
			item, field = field, Value{}
		}
		add(key, item)
	}
	add(name, field)
	return Value{n}
}

func (n *node) find(name string) int {
	for i, key := range n.keys {
		if key == name {
			return i
		}
	}
	return -1
}
