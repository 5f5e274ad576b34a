package plan

import (
	"strconv"

	"github.com/sentinel-runtime/sentinel/sdk"
)

// normal returns the form of a plan in which equal plans are equal texts: skills, inputs
// and dependencies of the steps in their order. Keys are sorted, white space is one space,
// ids are positions, and descriptions, reasoning and expectations are left out.
func normal(steps []planned) string {
	list := make([]sdk.Value, len(steps))
	for i, s := range steps {
		name := ""
		if s.skill != nil {
			name = s.skill.name
		}
		needs := sdk.Object() // the order in which they were found says nothing
		for _, id := range s.needs {
			needs = needs.With(position(steps, id), sdk.Bool(true))
		}
		inputs := sdk.Object()
		for _, f := range members(s.inputs) {
			key, v := f.Name, f.Value
			if key != autofix {
				inputs = inputs.With(key, v)
			}
		}
		list[i] = sdk.Object(sdk.F("s", sdk.String(name)), sdk.F("i", numbers(rewrite(inputs, func(text string) sdk.Value {
			return sdk.String(collapse(renamed(text, steps)))
		}))), sdk.F("d", needs))
	}
	return sdk.List(list...).Canonical()
}

// position is the name of a step in a normal form.
func position(steps []planned, id string) string {
	for i, s := range steps {
		if s.id == id {
			return "#" + strconv.Itoa(i)
		}
	}
	return ""
}

// renamed writes the references of a text with positions in place of ids.
func renamed(text string, steps []planned) string {
	out, at := "", 0
	for _, r := range references(text) {
		out += text[at:r.from] + "{{" + position(steps, r.id)
		for _, part := range r.path {
			out += "." + part
		}
		out, at = out+"}}", r.to
	}
	return out + text[at:]
}

// collapse trims a text and makes each white space one space.
func collapse(text string) string {
	out := make([]byte, 0, len(text))
	for _, c := range []byte(trim(text)) {
		if !space(c) {
			out = append(out, c)
		} else if len(out) > 0 && out[len(out)-1] != ' ' {
			out = append(out, ' ')
		}
	}
	return string(out)
}

// numbers writes equal numbers in the same way: 1 for 1.0.
func numbers(v sdk.Value) sdk.Value {
	switch v.Kind() {
	case sdk.KindNumber:
		if n, ok := v.AsInt(); ok {
			return sdk.Int(n)
		}
	case sdk.KindList:
		list := make([]sdk.Value, 0, v.Len())
		for _, item := range items(v) {
			list = append(list, numbers(item))
		}
		return sdk.List(list...)
	case sdk.KindObject:
		list := make([]sdk.Field, 0, v.Len())
		for _, f := range members(v) {
			name, item := f.Name, f.Value
			list = append(list, sdk.F(name, numbers(item)))
		}
		return sdk.Object(list...)
	}
	return v
}

// hash returns the 64-bit FNV-1a hash of a text. Plans are compared by that of their normal
// form, so that failed plans take little space in variables.
func hash(text string) string {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for _, c := range []byte(text) {
		h = (h ^ uint64(c)) * prime
	}
	s := strconv.FormatUint(h, 16)
	for len(s) < 16 {
		s = "0" + s
	}
	return s
}
