package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// CheckParams returns the problems of the parameters with which a step calls a command.
// Their paths begin in the parameters. A text for which deferred is true has its value
// only when the step is executed, so it is accepted as any value; in parameters that the
// command gets as they are written it is a text.
func (r *Registry) CheckParams(name string, params json.RawMessage, deferred func(text string) bool) sentinels.Problems {
	e := r.find(name)
	if e == nil {
		return nil
	}
	value, err := decodeParams(params)
	object, ok := value.(map[string]any)
	if err != nil || !ok {
		return nil // the schema of the step type reports it
	}
	c := paramCheck{e: e, deferred: deferred, written: map[string]string{}}
	for alias, stored := range e.Aliases {
		v, given := object[alias]
		if !given {
			continue
		}
		if _, both := object[stored]; both {
			c.add(alias, sentinels.KindDuplicate, "remove one of them", "%q and %q are the same parameter", alias, stored)
			continue
		}
		delete(object, alias)
		object[stored] = v
		c.written[stored] = alias
	}
	c.params = coercer{root: e.schema().shape}.coerce(e.schema().shape, object, 0)
	if err := e.schema().validate(c.params, len(params)); err != nil {
		if invalid := new(jsonschema.ValidationError); errors.As(err, &invalid) {
			c.found = append(c.found, c.collect(invalid)...)
		} else {
			c.add("", sentinels.KindLimit, "", "%v", err)
		}
	}
	c.expressions(object)
	slices.SortStableFunc(c.found, func(a, b sentinels.Problem) int { return strings.Compare(a.Path, b.Path) })
	return c.found
}

// expressions reports each {"expr": source} in the parameters: the command would get it as an
// object with a text. Parameters that hold definitions, whose steps have expressions, and
// those whose schema has a key of that name are left out.
func (c *paramCheck) expressions(object map[string]any) {
	properties, _ := coercer{root: c.e.schema().shape}.resolve(c.e.schema().shape)["properties"].(map[string]any)
	for name, value := range object {
		if !slices.Contains(c.e.Defines, name) && !slices.Contains(c.e.Raw, name) && !mentions(properties[name], "expr") {
			c.misplaced(value, []string{name})
		}
	}
}

// misplaced reports the expressions in a value, which is at a location. Values of variables,
// in a step that is data here, are where expressions belong.
func (c *paramCheck) misplaced(value any, location []string) {
	switch v := value.(type) {
	case map[string]any:
		if _, text := v["expr"].(string); text && len(v) == 1 {
			path := c.path(location) // what else is wrong with it follows from this
			c.found = slices.DeleteFunc(c.found, func(p sentinels.Problem) bool { return p.Path == path || strings.HasPrefix(p.Path, path+".") })
			c.add(path, sentinels.KindValue, sentinels.MisplacedExpressionHint, "%s", sentinels.MisplacedExpression)
			return
		}
		for name, below := range v {
			if name != "values" {
				c.misplaced(below, append(slices.Clone(location), name))
			}
		}
	case []any:
		for i, below := range v {
			c.misplaced(below, append(slices.Clone(location), strconv.Itoa(i)))
		}
	}
}

// mentions reports whether a schema has a key at any depth.
func mentions(schema any, key string) bool {
	switch v := schema.(type) {
	case map[string]any:
		for name, below := range v {
			if name == key || mentions(below, key) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(below any) bool { return mentions(below, key) })
	}
	return false
}

// A paramCheck collects the problems of the parameters of one step.
type paramCheck struct {
	e        *entry
	params   any
	deferred func(string) bool
	written  map[string]string // aliases that the step uses, by parameter
	found    sentinels.Problems
}

func (c *paramCheck) add(path string, kind sentinels.Kind, hint, format string, args ...any) {
	c.found = append(c.found, sentinels.Problem{Path: path, Kind: kind, Hint: hint, Message: fmt.Sprintf(format, args...)})
}

// path writes a location with the names that the step uses.
func (c *paramCheck) path(location []string) string {
	if len(location) > 0 && c.written[location[0]] != "" {
		location = append([]string{c.written[location[0]]}, location[1:]...)
	}
	return fieldPath(location)
}

// at returns the value at a location, and whether it is known only at run time.
func (c *paramCheck) at(location []string) (value any, later bool) {
	value = c.params
	for _, part := range location {
		switch v := value.(type) {
		case map[string]any:
			value = v[part]
		case []any:
			if i, err := strconv.Atoi(part); err == nil && i < len(v) {
				value = v[i]
			}
		}
	}
	text, ok := value.(string)
	return value, ok && len(location) > 0 && !slices.Contains(c.e.Raw, location[0]) && c.deferred(text)
}

// collect returns the problems below an error of the schema, none if all values in
// question are known only at run time.
func (c *paramCheck) collect(v *jsonschema.ValidationError) (out sentinels.Problems) {
	value, later := c.at(v.InstanceLocation)
	if later {
		return nil
	}
	path := c.path(v.InstanceLocation)
	one := func(kind sentinels.Kind, hint, format string, args ...any) sentinels.Problems {
		return sentinels.Problems{{Path: path, Kind: kind, Hint: hint, Message: fmt.Sprintf(format, args...)}}
	}
	switch k := v.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf:
		for i, cause := range v.Causes {
			found := c.collect(cause)
			if len(found) == 0 {
				return nil
			}
			if i == 0 || len(found) < len(out) {
				out = found
			}
		}
		if len(v.Causes) > 0 {
			return out
		}
	case *kind.Required:
		for _, name := range k.Missing {
			out = append(out, one(sentinels.KindMissing, c.takes(), "command %q needs the parameter %q", c.e.Name, fieldPath(append(slices.Clone(v.InstanceLocation), name)))...)
		}
		return out
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			p := sentinels.Problem{Path: c.path(append(slices.Clone(v.InstanceLocation), name)), Kind: sentinels.KindUnknown,
				Message: fmt.Sprintf("command %q has no parameter %q", c.e.Name, name)}
			p.Hint = c.near(name, v.InstanceLocation)
			out = append(out, p)
		}
		return out
	case *kind.Type:
		return one(sentinels.KindType, "", "is %s, want %s", typeName(value), typeNames(k.Want))
	case *kind.Enum:
		return one(sentinels.KindUnknown, enumHint(value, k.Want), "unknown value %s", list([]any{value}))
	}
	if len(v.Causes) == 0 {
		return one(sentinels.KindValue, "", "%s", reason(v))
	}
	for _, cause := range v.Causes {
		out = append(out, c.collect(cause)...)
	}
	return out
}

// near suggests a name for an unknown one at a location, or lists all.
func (c *paramCheck) near(unknown string, location []string) string {
	known := slices.Concat(c.e.properties, slices.Sorted(maps.Keys(c.e.Aliases)))
	if len(location) > 0 {
		known = c.namesAt(location)
	}
	switch near := sentinels.Suggest(unknown, known); {
	case len(near) > 0:
		return fmt.Sprintf("did you mean %q?", near[0])
	case len(location) > 0 && len(known) > 0:
		return "known: " + strings.Join(known, ", ")
	case len(location) > 0:
		return ""
	}
	return c.takes()
}

// namesAt returns the names of the object at a location.
func (c *paramCheck) namesAt(location []string) []string {
	with := coercer{root: c.e.schema().shape}
	schema := with.resolve(c.e.schema().shape)
	for _, part := range location {
		properties, _ := schema["properties"].(map[string]any)
		next, ok := properties[part].(map[string]any)
		if !ok {
			next, _ = schema["items"].(map[string]any)
		}
		schema = with.resolve(next)
	}
	return propertyNames(schema)
}

// takes lists the parameters.
func (c *paramCheck) takes() string {
	if len(c.e.properties) == 0 {
		return "it takes no parameters"
	}
	return "it takes " + strings.Join(c.e.properties, ", ")
}

// enumHint suggests a value for an unknown one, or lists all.
func enumHint(value any, want []any) string {
	var words []string
	for _, w := range want {
		if s, ok := w.(string); ok {
			words = append(words, s)
		}
	}
	if text, ok := value.(string); ok {
		if near := sentinels.Suggest(text, words); len(near) > 0 {
			return fmt.Sprintf("did you mean %q?", near[0])
		}
	}
	return "one of " + list(want)
}

// typeName returns the JSON type of a value with its article.
func typeName(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case []any:
		return "an array"
	case map[string]any:
		return "an object"
	}
	return "a number"
}

// typeNames returns the names of JSON types as typeName does.
func typeNames(types []string) string {
	names := make([]string, len(types))
	for i, t := range types {
		switch t {
		case "null":
			names[i] = t
		case "integer":
			names[i] = "a whole number"
		case "array", "object":
			names[i] = "an " + t
		default:
			names[i] = "a " + t
		}
	}
	return strings.Join(names, " or ")
}
