package sdk

import "strconv"

// StringField returns a string field, "" if it is not given. It converts a number or
// a boolean, which may be the value of a reference, to a string. Other types are an
// error.
//
//go:noinline
func (c *Context) StringField(name string) (string, error) {
	v := c.Field(name)
	switch v.Kind() {
	case KindAbsent, KindNull:
		return "", nil
	case KindString, KindNumber, KindBool:
		return v.node().str(), nil
	case KindObject:
		if s, ok := v.Get("text").AsString(); ok {
			return s, nil
		}
	}
	return "", BadField(name, "want a text, got "+v.Kind().String())
}

// IntField returns a whole number field of at least min, the fallback if it is not
// given. It converts a string of digits, which may come from an input or the output of
// a shell.
func (c *Context) IntField(name string, min, fallback int64) (int64, error) {
	v := c.Field(name)
	if !v.Given() {
		return fallback, nil
	}
	n, ok := v.AsInt()
	if s, isText := v.AsString(); isText {
		var err error
		n, err = strconv.ParseInt(s, 10, 64)
		ok = err == nil
	}
	if !ok {
		return 0, BadField(name, "want a whole number, got "+v.brief())
	}
	if n < min {
		return 0, BadField(name, "want at least "+strconv.FormatInt(min, 10)+", got "+strconv.FormatInt(n, 10))
	}
	return n, nil
}

// BoolField returns a boolean field, the fallback if it is not given.
func (c *Context) BoolField(name string, fallback bool) (bool, error) {
	v := c.Field(name)
	if !v.Given() {
		return fallback, nil
	}
	b, ok := v.AsBool()
	if !ok {
		return false, BadField(name, "want true or false, got "+v.brief())
	}
	return b, nil
}

// StringsField returns a field that is a list of strings. Without the field, given is
// false and the list nil.
func (c *Context) StringsField(name string) (list []string, given bool, err error) {
	v := c.Field(name)
	if !v.Given() {
		return nil, false, nil
	}
	list, ok := v.AsStrings()
	if !ok {
		return nil, true, BadField(name, "want a list of texts, got "+v.brief())
	}
	return list, true, nil
}

// Steps returns the number of steps in a field with the mark steps; 0 if it is not
// given.
func (c *Context) Steps(field string) int64 { return c.Field(field).Get("count").IntOr(0) }

// Branches returns the number of branches in a field with the mark branches. A field whose schema has the types array
// and object may have branches by name: then counts of the field is an object.
func (c *Context) Branches(field string) int { return c.Field(field).Get("counts").Len() }

// String returns the name of the kind for a message.
func (k Kind) String() string {
	switch k {
	case KindAbsent:
		return "nothing"
	case KindNull:
		return "null"
	case KindBool:
		return "a boolean"
	case KindNumber:
		return "a number"
	case KindString:
		return "a text"
	case KindList:
		return "a list"
	}
	return "an object"
}

// brief returns a value for a message: its JSON if that is short, else its kind.
func (v Value) brief() string {
	if s := v.String(); len(s) <= 40 {
		return s
	}
	return v.Kind().String()
}
