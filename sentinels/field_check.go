package sentinels

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/sentinels/reference"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// instance returns a step's own fields in the form that is validated against the
// schema of its type.
func (f *fieldSet) instance(own *node) map[string]any {
	instance := make(map[string]any, len(own.Members))
	for _, m := range own.Members {
		switch f.marks[m.Name] {
		case markSteps, markBranches:
			instance[m.Name] = make([]any, len(m.Value.Items)+len(m.Value.Members))
		case markDefinition:
			instance[m.Name] = nil
		default:
			instance[m.Name] = m.Value.Any()
		}
	}
	return instance
}

// checkFields validates a step's own fields against the schema of its type.
func (d *decoder) checkFields(f *fieldSet, own *node) {
	instance := f.instance(own)
	if why := f.size.TooCostly(f.raw, instance); why != "" {
		d.add(own, KindValue, "", "%s", why)
		return
	}
	err := f.check().Validate(instance)
	if err == nil {
		d.wholeNumbers(f, own)
		return
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		d.add(own, KindValue, "", "%s", err)
		return
	}
	v := schemaFindings{src: d.src, fields: f, root: own}
	d.problems = append(d.problems, v.problems(invalid)...)
}

// wholeNumbers reports whole numbers that guests cannot read, such as 1e308: for JSON
// Schema they are integers.
func (d *decoder) wholeNumbers(f *fieldSet, own *node) {
	properties, _ := f.raw["properties"].(map[string]any)
	for _, m := range own.Members {
		schema, _ := properties[m.Name].(map[string]any)
		if m.Value.Kind != '0' || schema["type"] != "integer" {
			continue
		}
		if v, err := strconv.ParseFloat(m.Value.Text, 64); err != nil || v > maxWhole || v < -maxWhole {
			d.add(m.Value, KindValue, "", "is %s, want a whole number of at most 2^53", textcut.Mark(m.Value.Text, maxProblemText))
		}
	}
}

// maxWhole is the number up to which a 64-bit float is exact.
const maxWhole = 1 << 53

// CheckFields validates the fields of a step, as the guest receives them, against
// the type's schema, and returns [Problems] with the paths of the fields.
// References must have been resolved: one that is left counts as a plain string.
// The contents of fields that hold steps or a definition are not checked.
func (s *TypeSpec) CheckFields(fields json.RawMessage) error {
	var large []strictjson.LargePart
	if len(fields) >= largeFields.Bytes {
		large = strictjson.LargeParts(fields, largeFields)
	}
	return s.CheckLarge(fields, large)
}

// CheckLarge is [TypeSpec.CheckFields] for a caller that knows the large values in the fields. They are not decoded
// where the schema says nothing about them.
func (s *TypeSpec) CheckLarge(fields json.RawMessage, large []strictjson.LargePart) error {
	if s.compiled == nil {
		return fmt.Errorf("check fields of %q: the spec is not part of a type set", s.Type)
	}
	f := s.compiled
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(f.outline(fields, large)))
	if err != nil {
		return fmt.Errorf("check fields of %q: %w", s.Type, err)
	}
	instance, ok := value.(map[string]any)
	if !ok {
		return fmt.Errorf("check fields of %q: they are not an object", s.Type)
	}
	for name := range instance {
		switch f.marks[name] {
		case markSteps, markBranches, markDefinition:
			instance[name] = nil // nested steps were checked when the definition was decoded
		}
	}
	if why := f.size.TooCostly(f.raw, instance); why != "" {
		return fmt.Errorf("check fields of %q: %s", s.Type, why)
	}
	err = f.check().Validate(instance)
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return err
	}
	src, problems := parse("", fields)
	if src.Root == nil {
		return problems
	}
	v := schemaFindings{src: src, fields: f, root: src.Root, resolved: true}
	found := Problems(v.problems(invalid))
	for i := range found {
		found[i].Line, found[i].Column = 0, 0 // the user does not see this text
	}
	return found.Err()
}

// freeKeys are the keywords of a schema that say nothing about a value but its type. freeRootKeys are those
// that say nothing about the values of the members of an object, and properties.
var (
	freeKeys     = []string{"type", "title", "description", "default", "examples", "deprecated", "$comment", keyword}
	freeRootKeys = append([]string{"properties", "required", "additionalProperties", "minProperties", "maxProperties", "$schema", "$defs"}, freeKeys...)
)

// freeFields returns the fields of whose value a schema describes at most the type.
func freeFields(schema map[string]any) map[string]bool {
	if extra, given := schema["additionalProperties"]; !onlyKeys(schema, freeRootKeys) || given && extra != false && extra != true {
		return nil
	}
	free := map[string]bool{}
	properties, _ := schema["properties"].(map[string]any)
	for name, property := range properties {
		if own, ok := property.(map[string]any); ok && onlyKeys(own, append([]string{"minProperties"}, freeKeys...)) {
			free[name] = true
		}
	}
	return free
}

func onlyKeys(schema map[string]any, keys []string) bool {
	for key := range schema {
		if !slices.Contains(keys, key) {
			return false
		}
	}
	return true
}

// largeFields are the values that [TypeSpec.CheckFields] does not decode where it need not.
var largeFields = strictjson.LargeLimits{Bytes: 16 << 10, Members: 64, Inline: 64 << 10, Depth: math.MaxInt}

// outline returns fields with an empty value of the same type in place of each large one that the schema
// does not describe. Decoding a value takes many times as long as finding it.
func (f *fieldSet) outline(fields json.RawMessage, large []strictjson.LargePart) json.RawMessage {
	var out []byte
	done := 0
	for _, p := range large {
		empty := map[byte]string{'"': `""`, '[': `[]`, '{': `{}`}[fields[p.From]]
		if !f.free[p.Field] || p.Depth == 1 && empty == "{}" { // an object may need a number of members
			continue
		}
		out = append(append(out, fields[done:p.From]...), empty...)
		done = p.To
	}
	if done == 0 {
		return fields
	}
	return append(out, fields[done:]...)
}

// schemaFindings converts the errors of the schema library to problems. A string with
// a reference is accepted as any type, because its value is known only at run time.
type schemaFindings struct {
	src      *source
	fields   *fieldSet
	root     *node
	resolved bool // references have been resolved, so that none is accepted as another type
}

// deferred reports whether the value of n is known only at run time. Fields that the
// guest receives as written are never resolved.
func (v *schemaFindings) deferred(n *node, location []string) bool {
	if v.resolved || n.Kind != '"' || !reference.Contains(n.Text) || len(location) == 0 {
		return false
	}
	switch v.fields.marks[location[0]] {
	case markRaw, markExpression:
		return false
	}
	return true
}

// given returns the type of a value, and the first bytes of it if the text of the definition has
// a reference in its place.
func (v *schemaFindings) given(n *node) string {
	if !v.resolved || n.Kind == 'n' {
		return n.TypeName()
	}
	const most = 40
	return n.TypeName() + " (" + textcut.Mark(string(n.Canonical()), most) + ")"
}

// nodeAt returns the node at an instance location, or the nearest one around it.
func (v *schemaFindings) nodeAt(location []string) *node {
	n := v.root
	for _, token := range location {
		var next *node
		if n.Kind == '[' {
			if i, err := strconv.Atoi(token); err == nil && i < len(n.Items) {
				next = n.Items[i]
			}
		} else {
			next = n.Member(token)
		}
		if next == nil {
			return n
		}
		n = next
	}
	return n
}

// problems returns the problems of the fields, within the limits for one step. It
// returns none if all values in question are deferred.
func (v *schemaFindings) problems(e *jsonschema.ValidationError) []Problem {
	found := v.collect(e)
	if len(found) > maxProblems {
		found = append(found[:maxProblems:maxProblems], v.src.problem(v.root.Start, v.root.Path(), KindValue, "",
			fmt.Sprintf("more than %d problems, only the first are listed", maxProblems)))
	}
	for i := range found {
		p := &found[i]
		p.Path, p.Message, p.Hint = textcut.Mark(p.Path, maxProblemText), textcut.Mark(p.Message, maxProblemText), textcut.Mark(p.Hint, maxProblemText)
	}
	return found
}

// Limits of the problems of one step, ABI clause A8.5. Half a million invalid values
// would make an error of 50 MB, which is stored and shown.
const (
	maxProblems    = 100
	maxProblemText = 1 << 10 // bytes of a message, a path, a hint
)

// collect returns the problems of e, at most maxProblems+1 of them, none if all values
// in question are deferred.
func (v *schemaFindings) collect(e *jsonschema.ValidationError) []Problem {
	n := v.nodeAt(e.InstanceLocation)
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
				if all = append(all, v.collect(cause)...); len(all) > maxProblems {
					return all[:maxProblems+1]
				}
			}
			return all
		}
	}
	if v.deferred(n, e.InstanceLocation) {
		return nil
	}
	return v.describe(n, e)
}

// alternatives returns the problem of a value that no alternative accepts: the types
// that are accepted, the fields that are required, or else the problems of the
// alternative that is nearest.
func (v *schemaFindings) alternatives(n *node, e *jsonschema.ValidationError) []Problem {
	if v.deferred(n, e.InstanceLocation) {
		return nil
	}
	causes := e.Causes
	var best []Problem
	var types, fields []string
	onlyTypes, onlyFields := true, true
	for _, cause := range causes {
		found := v.collect(cause)
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
		if k, ok := singleCause(cause).ErrorKind.(*kind.Required); ok {
			fields = append(fields, strings.Join(k.Missing, `" with "`))
		} else {
			onlyFields = false
		}
	}
	at := func(kind Kind, format string, args ...any) []Problem {
		return []Problem{v.src.problem(n.Start, n.Path(), kind, "", fmt.Sprintf(format, args...))}
	}
	switch {
	case len(causes) > 0 && onlyTypes:
		slices.Sort(types)
		types = slices.Compact(types)
		p := at(KindType, "is %s, want %s", v.given(n), articles(types))
		p[0].Hint = v.typeHint(n, types)
		return p
	case len(causes) > 0 && onlyFields:
		return at(KindMissing, "needs %s", quotedList(fields, " or "))
	}
	return best
}

// singleCause follows single causes down to the innermost one.
func singleCause(e *jsonschema.ValidationError) *jsonschema.ValidationError {
	for len(e.Causes) == 1 {
		e = e.Causes[0]
	}
	return e
}

// articles returns the names of JSON types as [node.typeName] does, so that "is a
// number, want a string" has the same words from the decoder and from a schema.
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

// describe converts one error without causes.
func (v *schemaFindings) describe(n *node, e *jsonschema.ValidationError) []Problem {
	var out []Problem
	add := func(offset int, path string, kind Kind, hint, format string, args ...any) {
		out = append(out, v.src.problem(offset, path, kind, hint, fmt.Sprintf(format, args...)))
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Type:
		add(n.Start, n.Path(), KindType, v.typeHint(n, k.Want), "is %s, want %s", v.given(n), articles(k.Want))
	case *kind.Required:
		for _, name := range k.Missing {
			add(n.Start, n.Path(), KindMissing, missingHint(n, name), "%q is missing", name)
		}
	case *kind.Enum:
		if n.Kind == '"' {
			add(n.Start, n.Path(), KindUnknown, didYouMean(n.Text, texts(k.Want)), "unknown value %q", textcut.Mark(n.Text, maxProblemText))
			break
		}
		add(n.Start, n.Path(), KindValue, "", "is not one of the allowed values")
	case *kind.AdditionalProperties:
		known := propertyNames(v.fields.raw, e.InstanceLocation)
		unknown := make(map[string]bool, len(k.Properties))
		for _, name := range k.Properties {
			unknown[name] = true
		}
		for _, m := range n.Members {
			if unknown[m.Name] && len(out) <= maxProblems {
				add(m.Start, m.Value.Path(), KindUnknown, cmp.Or(eachHint(n, m), didYouMean(m.Name, known)), "unknown key %q", textcut.Mark(m.Name, maxProblemText))
			}
		}
	case *kind.MinItems:
		add(n.Start, n.Path(), KindValue, "", "has %d items, want at least %d", k.Got, k.Want)
	case *kind.MaxItems:
		add(n.Start, n.Path(), KindValue, "", "has %d items, want at most %d", k.Got, k.Want)
	case *kind.MinLength:
		if k.Got == 0 {
			add(n.Start, n.Path(), KindValue, "", "is empty")
			break
		}
		add(n.Start, n.Path(), KindValue, "", "has %d characters, want at least %d", k.Got, k.Want)
	case *kind.MaxLength:
		add(n.Start, n.Path(), KindValue, "", "has %d characters, want at most %d", k.Got, k.Want)
	case *kind.Minimum:
		add(n.Start, n.Path(), KindValue, "", "is %s, want at least %s", n.Text, k.Want.RatString())
	case *kind.Maximum:
		add(n.Start, n.Path(), KindValue, "", "is %s, want at most %s", n.Text, k.Want.RatString())
	case *kind.ExclusiveMinimum:
		add(n.Start, n.Path(), KindValue, "", "is %s, want more than %s", n.Text, k.Want.RatString())
	case *kind.ExclusiveMaximum:
		add(n.Start, n.Path(), KindValue, "", "is %s, want less than %s", n.Text, k.Want.RatString())
	case *kind.Pattern:
		add(n.Start, n.Path(), KindValue, "", "%q does not match %s", textcut.Mark(n.Text, maxProblemText), k.Want)
	case *kind.Format:
		add(n.Start, n.Path(), KindValue, "", "%q is not a valid %s", textcut.Mark(n.Text, maxProblemText), k.Want)
	case *kind.OneOf:
		if keys := v.exclusive(e.InstanceLocation, k.Subschemas); len(keys) > 1 {
			add(n.Start, n.Path(), KindValue, "", "takes only one of %s", quotedList(keys, " and "))
			break
		}
		add(n.Start, n.Path(), KindValue, "", "matches more than one alternative of its schema")
	default:
		text := "does not match its schema"
		if unit := e.BasicOutput(); unit.Error != nil {
			text = unit.Error.String()
		}
		add(n.Start, n.Path(), KindValue, "", "%s", text)
	}
	return out
}

// missingHint returns what to write for a field that a step lacks, "" if its meaning is not clear.
func missingHint(n *node, name string) string {
	if name != "definition" {
		return ""
	}
	for _, from := range []string{"id", "name"} {
		if m := n.Member(from); m != nil && m.Kind == '"' {
			return `write "definition": ` + asRef(m) + `, or the definition itself`
		}
	}
	return `write "definition": {"$ref": "ID"}, or the definition itself`
}

// typeHint returns the hint for a value of another type than wanted.
func (v *schemaFindings) typeHint(n *node, want []string) string {
	if n.Kind == '"' && strings.HasSuffix(n.Key(), durationSuffix) && !reference.Contains(n.Text) {
		return durationHint(n.Text)
	}
	return formHint(n, want...)
}

// exclusive returns the keys that alternatives of the step's own schema require.
func (v *schemaFindings) exclusive(location []string, matched []int) []string {
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
