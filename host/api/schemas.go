package api

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// problemSchema is what every error looks like.
func problemSchema() object {
	var codes []string
	for _, c := range abi.Codes() {
		codes = append(codes, string(c))
	}
	code := object{"type": "string", "pattern": "^[a-z][a-z0-9_]{0,63}$", "description": "one of " + strings.Join(codes, ", ") + ", or one of a plugin or a step, such as exit"}
	text, number := object{"type": "string"}, object{"type": "integer"}
	return object{
		// Members that are not named may be added later.
		"type": "object", "required": []string{"title", "status", "detail", "code"},
		"properties": object{
			"title": text, "status": number, "detail": text, "instance": text, "hint": text, "field": text,
			"code":         code,
			"retryAfterMs": number, "permanent": object{"type": "boolean"}, "revision": number,
			"line":    object{"type": "integer", "description": "where in the body the mistake is, from 1"},
			"column":  object{"type": "integer", "description": "in characters, from 1"},
			"path":    object{"type": "string", "description": "the place in the body's value, such as steps[2].command"},
			"changes": object{"description": "with 412: what changed since the revision that the edit was made on"},
		},
	}
}

// Schemas of commands have definitions of their own; as a part of the document
// their references have to say where they are now.

// schemaName is a command's name in the letters that a component may have.
func schemaName(name, side string) string {
	return strings.NewReplacer("/", ".", ".", "_2E").Replace(name) + "." + side
}

// addSchemas adds what a command takes and gives.
func (d *document) addSchemas(c command.Command) {
	input := c.Input()
	if len(input) == 0 {
		input = json.RawMessage(`{"type":"object"}`)
	}
	// A command without an output schema says nothing of its result, so there is
	// nothing to refer to either.
	for side, text := range map[string]json.RawMessage{"input": input, "output": c.Output()} {
		var schema any
		if len(text) == 0 || json.Unmarshal(text, &schema) != nil {
			continue
		}
		name := schemaName(c.Name, side)
		d.schemas[name] = moved(schema, "#/components/schemas/"+name)
	}
}

// definitionSchema is the component with the schema of definitions.
const definitionSchema = "Definition"

// body returns the schema of what a route reads: the parameters of its command
// without those that the path, the query and the route itself give, or the one
// that the body is. It says no more than that the body is an object where this
// host does not have the command.
func (d *document) body(route *Route) object {
	input, _ := d.schemas[schemaName(route.Command, "input")].(object)
	params, _ := input["properties"].(object)
	if route.body != "*" {
		return d.oneBody(route.body, params)
	}
	if params == nil {
		return object{"type": "object"}
	}
	elsewhere := map[string]bool{}
	for _, name := range route.placeholders() {
		elsewhere[inCommand[name]] = true
	}
	for _, p := range route.Query {
		elsewhere[cmp.Or(p.As, p.Name)] = true
	}
	for name := range route.fixed {
		elsewhere[name] = true
	}
	properties := maps.Clone(params)
	maps.DeleteFunc(properties, func(name string, _ any) bool { return elsewhere[name] })
	out := maps.Clone(input)
	delete(out, "$defs") // references lead to those of the command
	out["properties"] = properties
	if required, ok := input["required"].([]any); ok {
		required = slices.DeleteFunc(slices.Clone(required), func(name any) bool { return elsewhere[name.(string)] })
		if out["required"] = required; len(required) == 0 {
			delete(out, "required")
		}
	}
	return out
}

// oneBody returns the schema of a body that is one parameter.
func (d *document) oneBody(name string, params object) object {
	if _, ok := d.schemas[definitionSchema]; ok {
		switch name {
		case "definition":
			return ref(definitionSchema)
		case "step":
			return object{"$ref": "#/components/schemas/" + definitionSchema + "/$defs/step"}
		}
	}
	out := object{"type": "object"}
	if param, ok := params[name].(object); ok && param["description"] != nil {
		out["description"] = param["description"]
	}
	return out
}

// moved returns a schema whose local references begin at place.
func moved(schema any, place string) any {
	switch s := schema.(type) {
	case object:
		out := make(object, len(s))
		for k, v := range s {
			target, isText := v.(string)
			// "$ref" may also be the name of a property; then its value is a
			// schema and no text, or it stands below "properties".
			switch {
			case k == "$ref" && isText && strings.HasPrefix(target, "#"):
				out[k] = place + strings.TrimPrefix(target, "#")
			case slices.Contains([]string{"const", "enum", "default", "examples"}, k):
				out[k] = v // values, not schemas
			case k == "$schema" || k == "$id":
				// They would make it a document of its own.
			case k == "properties" || k == "$defs" || k == "patternProperties" || k == "dependentSchemas":
				out[k] = movedEach(v, place)
			default:
				out[k] = moved(v, place)
			}
		}
		return out
	case []any:
		out := make([]any, len(s))
		for i, v := range s {
			out[i] = moved(v, place)
		}
		return out
	}
	return schema
}

// movedEach moves the schemas of an object whose keys are names of the user's.
func movedEach(v any, place string) any {
	named, ok := v.(object)
	if !ok {
		return v
	}
	out := make(object, len(named))
	for name, schema := range named {
		out[name] = moved(schema, place)
	}
	return out
}
