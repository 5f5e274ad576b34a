package sdk

import "strconv"

// StringField returns a field that is a string or a value with a natural text,
// "" if it is not given. A number or boolean, which a reference may have put
// there, counts as its text.
func (c *Context) StringField(name string) (string, error) {
	v := c.Field(name)
	switch v.Kind() {
	case KindAbsent, KindNull:
		return "", nil
	case KindString, KindNumber, KindBool:
		return v.n.text, nil
	case KindObject:
		if s, ok := v.Get("text").AsString(); ok {
			return s, nil
		}
	}
	return "", BadField(name, "want a text, got "+v.Kind().String())
}

// IntField returns a field that is a whole number of at least min, the fallback
// if it is not given. A string of digits, which an input or a shell's output
// may have put there, counts as its number.
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

// BoolField returns a field that is a boolean, the fallback if it is not given.
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

// StringsField returns a field that is a list of strings; given is false and
// the list nil if there is none.
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

// Steps returns how many steps a field with the mark steps has; 0 if it is not
// given.
func (c *Context) Steps(field string) int64 { return c.Field(field).Get("count").IntOr(0) }

// Branches returns how many branches a field with the mark branches has.
func (c *Context) Branches(field string) int { return c.Field(field).Get("counts").Len() }

// String returns the kind as a message names it.
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

// brief shows a value in a message: itself if it is short, else its kind.
func (v Value) brief() string {
	if s := v.String(); len(s) <= 40 {
		return s
	}
	return v.Kind().String()
}
