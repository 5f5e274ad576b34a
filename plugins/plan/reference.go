package plan

import (
	"strconv"

	"github.com/sentinel-runtime/sentinel/sdk"
)

// A reference is {{steps.ID.outputs.PATH}} in an input.
type reference struct {
	from, to int // of the text, with the braces
	id       string
	path     []string
	problem  string
}

// references finds the references in a text. Braces with anything else than steps. in them
// are part of the text, because files have such templates.
func references(text string) []reference {
	var list []reference
	for at := 0; ; {
		from := index(text[at:], "{{")
		if from < 0 {
			return list
		}
		from += at
		length := index(text[from:], "}}")
		if length < 0 {
			return list
		}
		to := from + length + 2
		if inner := trim(text[from+2 : to-2]); len(inner) >= 6 && inner[:6] == "steps." {
			list = append(list, parseReference(inner, from, to))
			at = to
		} else {
			at = from + 2
		}
	}
}

// parseReference reads steps.ID.outputs.PATH.
func parseReference(inner string, from, to int) reference {
	r := reference{from: from, to: to}
	parts, part := []string{}, ""
	for _, c := range []byte(inner) {
		switch c {
		case '.', '[', ']':
			if part != "" {
				parts = append(parts, part)
			}
			part = ""
		default:
			part += string(rune(c))
		}
	}
	if part != "" {
		parts = append(parts, part)
	}
	if len(parts) < 3 || parts[2] != "outputs" && parts[2] != "output" || !validID(parts[1]) {
		r.problem = "unknown reference " + sdk.Quote(sdk.Cut(inner, 80)) + ", want steps.ID.outputs.FIELD"
		return r
	}
	r.id, r.path = parts[1], parts[3:]
	return r
}

// each calls fn with every string in a value.
func each(v sdk.Value, fn func(string)) {
	switch v.Kind() {
	case sdk.KindString:
		fn(v.StringOr(""))
	case sdk.KindList:
		for _, item := range items(v) {
			each(item, fn)
		}
	case sdk.KindObject:
		for _, f := range members(v) {
			item := f.Value
			each(item, fn)
		}
	}
}

// rewrite returns v with every string replaced by what fn returns.
func rewrite(v sdk.Value, fn func(string) sdk.Value) sdk.Value {
	switch v.Kind() {
	case sdk.KindString:
		return fn(v.StringOr(""))
	case sdk.KindList:
		list := make([]sdk.Value, 0, v.Len())
		for _, item := range items(v) {
			list = append(list, rewrite(item, fn))
		}
		return sdk.List(list...)
	case sdk.KindObject:
		list := make([]sdk.Field, 0, v.Len())
		for _, f := range members(v) {
			name, item := f.Name, f.Value
			list = append(list, sdk.F(name, rewrite(item, fn)))
		}
		return sdk.Object(list...)
	}
	return v
}

// lookup returns the part of an output at a path, which may index lists.
func lookup(v sdk.Value, path []string) sdk.Value {
	for _, part := range path {
		if v.Kind() == sdk.KindList {
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= v.Len() {
				return sdk.Value{}
			}
			v = v.At(i)
			continue
		}
		v = v.Get(part)
	}
	return v
}

// trim cuts white space from both ends.
func trim(s string) string {
	for s != "" && space(s[0]) {
		s = s[1:]
	}
	for s != "" && space(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	return s
}

func space(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// items returns the items of a list. A loop over a slice is less code than one over the
// iterator of the value.
//
//go:noinline
func items(v sdk.Value) []sdk.Value {
	if v.Kind() != sdk.KindList {
		return nil
	}
	list := make([]sdk.Value, v.Len())
	for i := range list {
		list[i] = v.At(i)
	}
	return list
}

// members returns the members of an object.
//
//go:noinline
func members(v sdk.Value) []sdk.Field {
	list := make([]sdk.Field, 0, v.Len())
	for name, value := range v.Fields() {
		list = append(list, sdk.F(name, value))
	}
	return list
}
