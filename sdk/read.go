package sdk

import "strconv"

// The accessors that plugins chain are not inlined: inlining would add more than a
// hundred bytes per call to a guest, 4 % of the built-in one.

// Kind returns the kind of v.
func (v Value) Kind() Kind {
	if v.n == nil {
		return KindAbsent
	}
	return v.n.kind
}

// Exists reports whether v is not absent; null exists.
//
//go:noinline
func (v Value) Exists() bool { return v.n != nil }

// Given reports whether v is neither absent nor null.
//
//go:noinline
func (v Value) Given() bool { return v.Kind() > KindNull }

// Len returns the number of items of a list or fields of an object, else 0.
func (v Value) Len() int { return len(v.node().items) }

// Get returns the field with that name, absent if there is none.
//
//go:noinline
func (v Value) Get(name string) Value {
	n := v.node()
	if i := n.find(name); i >= 0 {
		return n.items[i]
	}
	return Value{}
}

// At returns item i of a list, absent if there is none.
func (v Value) At(i int) Value {
	n := v.node()
	if n.kind != KindList || i < 0 || i >= len(n.items) {
		return Value{}
	}
	return n.items[i]
}

// Items iterates over a list. Other values have no items.
func (v Value) Items() func(yield func(int, Value) bool) {
	return func(yield func(int, Value) bool) {
		if v.Kind() != KindList {
			return
		}
		for i, item := range v.node().items {
			if !yield(i, item) {
				return
			}
		}
	}
}

// Fields iterates over an object in the order of its fields.
func (v Value) Fields() func(yield func(string, Value) bool) {
	return func(yield func(string, Value) bool) {
		n := v.node()
		for i, key := range n.keys {
			if !yield(key, n.items[i]) {
				return
			}
		}
	}
}

// AsString returns the text of a string.
//
//go:noinline
func (v Value) AsString() (s string, ok bool) {
	if v.Kind() != KindString {
		return "", false
	}
	return v.node().str(), true
}

// AsBool returns a boolean.
func (v Value) AsBool() (b, ok bool) {
	n := v.node()
	return n.kind == KindBool && n.text == "true", n.kind == KindBool
}

// AsFloat returns a number.
func (v Value) AsFloat() (f float64, ok bool) {
	if v.Kind() != KindNumber {
		return 0, false
	}
	f, err := strconv.ParseFloat(v.n.text, 64)
	return f, err == nil
}

// AsInt returns a whole number, also one that is written as 3.0 or 3e2.
func (v Value) AsInt() (n int64, ok bool) {
	if v.Kind() != KindNumber {
		return 0, false
	}
	if n, err := strconv.ParseInt(v.n.text, 10, 64); err == nil {
		return n, true
	}
	f, ok := v.AsFloat()
	const exact = 1 << 53 // not every larger whole number is a float64
	if !ok || f > exact || f < -exact || f != float64(int64(f)) {
		return 0, false
	}
	return int64(f), true
}

// AsStrings returns a list of strings; ok is false for any other value.
func (v Value) AsStrings() (list []string, ok bool) {
	if v.Kind() != KindList {
		return nil, false
	}
	items := v.node().items
	list = make([]string, len(items))
	for i, item := range items {
		if list[i], ok = item.AsString(); !ok {
			return nil, false
		}
	}
	return list, true
}

// StringOr returns the text of a string, or the fallback.
//
//go:noinline
func (v Value) StringOr(fallback string) string {
	if s, ok := v.AsString(); ok {
		return s
	}
	return fallback
}

// IntOr returns a whole number, or the fallback.
//
//go:noinline
func (v Value) IntOr(fallback int64) int64 {
	if n, ok := v.AsInt(); ok {
		return n
	}
	return fallback
}

// BoolOr returns a boolean, or the fallback.
//
//go:noinline
func (v Value) BoolOr(fallback bool) bool {
	if b, ok := v.AsBool(); ok {
		return b
	}
	return fallback
}
