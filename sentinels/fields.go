package sentinels

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// instance returns a step's own fields as the schema of its type sees them.
func (f *fieldSet) instance(own *node) map[string]any {
	instance := make(map[string]any, len(own.members))
	for _, m := range own.members {
		switch f.marks[m.name] {
		case markSteps, markBranches:
			instance[m.name] = make([]any, len(m.value.items))
		case markDefinition:
			instance[m.name] = nil
		default:
			instance[m.name] = m.value.value()
		}
	}
	return instance
}

// checkFields holds a step's own fields to the schema of its type.
func (d *decoder) checkFields(f *fieldSet, own *node) {
	instance := f.instance(own)
	if why := f.tooCostly(instance); why != "" {
		d.add(own, KindValue, "", "%s", why)
		return
	}
	err := f.check.Validate(instance)
	if err == nil {
		return
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		d.add(own, KindValue, "", "%s", err)
		return
	}
	v := verdict{src: d.src, fields: f, root: own}
	d.problems = append(d.problems, v.problems(invalid)...)
}

// CheckFields holds the fields of a step, as they are handed to the guest, to
// the type's schema, and returns [Problems] with the paths of the fields.
// References are resolved by then: one that is left is just
// a string. Fields that hold steps or a definition are not looked into.
func (s *TypeSpec) CheckFields(fields json.RawMessage) error {
	if s.compiled == nil {
		return fmt.Errorf("check fields of %q: the spec is not part of a type set", s.Type)
	}
	f := s.compiled
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(fields))
	if err != nil {
		return fmt.Errorf("check fields of %q: %w", s.Type, err)
	}
	instance, ok := value.(map[string]any)
	if !ok {
		return fmt.Errorf("check fields of %q: they are no object", s.Type)
	}
	for name := range instance {
		switch f.marks[name] {
		case markSteps, markBranches, markDefinition:
			instance[name] = nil // what is nested was checked when the definition was
		}
	}
	if why := f.tooCostly(instance); why != "" {
		return fmt.Errorf("check fields of %q: %s", s.Type, why)
	}
	err = f.check.Validate(instance)
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return err
	}
	src, root, problems := parse("", fields)
	if root == nil {
		return problems
	}
	v := verdict{src: src, fields: f, root: root, resolved: true}
	found := Problems(v.problems(invalid))
	for i := range found {
		found[i].Line, found[i].Column = 0, 0 // nobody has the text in front of them
	}
	return found.Err()
}

// A verdict turns what the schema library found into problems. A string with
// a reference is taken for any type, since its value is known only at run time.
type verdict struct {
	src      *source
	fields   *fieldSet
	root     *node
	resolved bool // a reference excuses nothing any more
}

// excused reports whether the value of n is not known yet. Fields that are
// handed over as written never get another one.
func (v *verdict) excused(n *node, location []string) bool {
	if v.resolved || n.kind != '"' || !hasReference(n.text) || len(location) == 0 {
		return false
	}
	switch v.fields.marks[location[0]] {
	case markRaw, markExpression:
		return false
	}
	return true
}

// at returns the node that an instance location leads to.
func (v *verdict) at(location []string) *node {
	n := v.root
	for _, token := range location {
		var next *node
		if n.kind == '[' {
			if i, err := strconv.Atoi(token); err == nil && i < len(n.items) {
				next = n.items[i]
			}
		} else {
			next = n.member(token)
		}
		if next == nil {
			return n
		}
		n = next
	}
	return n
}

// problems returns what is wrong with the fields, within the limits on problems of
// one step; none if references excuse all of it.
func (v *verdict) problems(e *jsonschema.ValidationError) []Problem {
	found := v.findings(e)
	if len(found) > maxProblems {
		found = append(found[:maxProblems:maxProblems], v.src.problem(v.root.start, v.root.path, KindValue, "",
			fmt.Sprintf("there are more than %d problems, of which the first are listed", maxProblems)))
	}
	for i := range found {
		p := &found[i]
		p.Path, p.Message, p.Hint = shorten(p.Path), shorten(p.Message), shorten(p.Hint)
	}
	return found
}

// shorten cuts what is shown of a text to maxProblemText bytes.
func shorten(text string) string {
	if len(text) <= maxProblemText {
		return text
	}
	return strings.ToValidUTF8(text[:maxProblemText], "") + "…"
}

// findings returns the problems of e, or the first maxProblems+1 of them; none if
// references excuse all of it.
func (v *verdict) findings(e *jsonschema.ValidationError) []Problem {
	n := v.at(e.InstanceLocation)
	switch k := e.ErrorKind.(type) {
	case *kind.AnyOf:
		return v.alternatives(n, e)
	case *kind.OneOf:
		if len(k.Subschemas) == 0 {
			return v.alternatives(n, e)
		}
	default:
		if len(e.Causes) > 0 {
			var all []Problem
			for _, cause := range e.Causes {
				if all = append(all, v.findings(cause)...); len(all) > maxProblems {
					return all[:maxProblems+1]
				}
			}
			return all
		}
	}
	if v.excused(n, e.InstanceLocation) {
		return nil
	}
	return v.leaf(n, e)
}

// alternatives says what is wrong when no alternative fits: which types would
// do, which fields would do, or else the complaints of the nearest one.
func (v *verdict) alternatives(n *node, e *jsonschema.ValidationError) []Problem {
	if v.excused(n, e.InstanceLocation) {
		return nil
	}
	causes := e.Causes
	var best []Problem
	var types, fields []string
	onlyTypes, onlyFields := true, true
	for _, cause := range causes {
		found := v.findings(cause)
		if len(found) == 0 {
			return nil
		}
		if best == nil || len(found) < len(best) {
			best = found
		}
		if k, ok := cause.ErrorKind.(*kind.Type); ok {
			types = append(types, k.Want...)
		} else {
			onlyTypes = false
			best = found // the type was right, so this alternative was meant
		}
		if k, ok := only(cause).ErrorKind.(*kind.Required); ok {
			fields = append(fields, strings.Join(k.Missing, `" with "`))
		} else {
			onlyFields = false
		}
	}
	at := func(kind Kind, format string, args ...any) []Problem {
		return []Problem{v.src.problem(n.start, n.path, kind, "", fmt.Sprintf(format, args...))}
	}
	switch {
	case len(causes) > 0 && onlyTypes:
		slices.Sort(types)
		return at(KindType, "is %s, want %s", n.what(), articles(slices.Compact(types)))
	case len(causes) > 0 && onlyFields:
		return at(KindMissing, "needs %s", quotedList(fields, " or "))
	}
	return best
}

// only follows single causes down to the one that says something.
func only(e *jsonschema.ValidationError) *jsonschema.ValidationError {
	for len(e.Causes) == 1 {
		e = e.Causes[0]
	}
	return e
}

// articles names JSON types as [node.what] does, so that "is a number, want a string"
// reads the same whoever found it.
func articles(types []string) string {
	names := make([]string, len(types))
	for i, t := range types {
		switch t {
		case "array", "object":
			names[i] = "an " + t
		case "integer":
			names[i] = "a whole number"
		case "null":
			names[i] = t
		default:
			names[i] = "a " + t
		}
	}
	return strings.Join(names, " or ")
}

// leaf words one finding.
func (v *verdict) leaf(n *node, e *jsonschema.ValidationError) []Problem {
	var out []Problem
	add := func(offset int, path string, kind Kind, hint, format string, args ...any) {
		out = append(out, v.src.problem(offset, path, kind, hint, fmt.Sprintf(format, args...)))
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Type:
		add(n.start, n.path, KindType, "", "is %s, want %s", n.what(), articles(k.Want))
	case *kind.Required:
		for _, name := range k.Missing {
			add(n.start, n.path, KindMissing, "", "%q is missing", name)
		}
	case *kind.Enum:
		if n.kind == '"' {
			add(n.start, n.path, KindUnknown, didYouMean(n.text, texts(k.Want)), "%q is none of its values", shorten(n.text))
			break
		}
		add(n.start, n.path, KindValue, "", "is none of its values")
	case *kind.AdditionalProperties:
		known := propertyNames(v.fields.raw, e.InstanceLocation)
		unknown := make(map[string]bool, len(k.Properties))
		for _, name := range k.Properties {
			unknown[name] = true
		}
		for _, m := range n.members {
			if unknown[m.name] && len(out) <= maxProblems {
				add(m.start, m.value.path, KindUnknown, didYouMean(m.name, known), "unknown key %q", shorten(m.name))
			}
		}
	case *kind.MinItems:
		add(n.start, n.path, KindValue, "", "has %d items, want at least %d", k.Got, k.Want)
	case *kind.MaxItems:
		add(n.start, n.path, KindValue, "", "has %d items, want at most %d", k.Got, k.Want)
	case *kind.MinLength:
		if k.Got == 0 {
			add(n.start, n.path, KindValue, "", "is empty")
			break
		}
		add(n.start, n.path, KindValue, "", "has %d characters, want at least %d", k.Got, k.Want)
	case *kind.MaxLength:
		add(n.start, n.path, KindValue, "", "has %d characters, want at most %d", k.Got, k.Want)
	case *kind.Minimum:
		add(n.start, n.path, KindValue, "", "is %s, want at least %s", n.text, k.Want.RatString())
	case *kind.Maximum:
		add(n.start, n.path, KindValue, "", "is %s, want at most %s", n.text, k.Want.RatString())
	case *kind.ExclusiveMinimum:
		add(n.start, n.path, KindValue, "", "is %s, want more than %s", n.text, k.Want.RatString())
	case *kind.ExclusiveMaximum:
		add(n.start, n.path, KindValue, "", "is %s, want less than %s", n.text, k.Want.RatString())
	case *kind.Pattern:
		add(n.start, n.path, KindValue, "", "%q does not match %s", shorten(n.text), k.Want)
	case *kind.Format:
		add(n.start, n.path, KindValue, "", "%q is no %s", shorten(n.text), k.Want)
	case *kind.OneOf:
		if keys := v.exclusive(e.InstanceLocation, k.Subschemas); len(keys) > 1 {
			add(n.start, n.path, KindValue, "", "takes only one of %s", quotedList(keys, " and "))
			break
		}
		add(n.start, n.path, KindValue, "", "fits more than one alternative of its schema")
	default:
		text := "does not fit its schema"
		if unit := e.BasicOutput(); unit.Error != nil {
			text = unit.Error.String()
		}
		add(n.start, n.path, KindValue, "", "%s", text)
	}
	return out
}

// exclusive returns the keys that alternatives of the step's own schema require.
func (v *verdict) exclusive(location []string, matched []int) []string {
	list, _ := v.fields.raw["oneOf"].([]any)
	var keys []string
	for _, i := range matched {
		if len(location) > 0 || i >= len(list) {
			return nil
		}
		s, _ := list[i].(map[string]any)
		required, _ := s["required"].([]any)
		keys = append(keys, texts(required)...)
	}
	return keys
}

// texts returns the strings among values.
func texts(values []any) []string {
	var out []string
	for _, v := range values {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}
