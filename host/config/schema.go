package config

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/secret"
)

// Schema returns the JSON Schema of the file, for editors.
func Schema() json.RawMessage {
	def := Default()
	root := schemaOf(reflect.ValueOf(def), "")
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "Configuration of sentinel"
	for key, value := range map[string]map[string]any{
		"$schema": {"type": "string"},
		"format":  {"type": "integer", "minimum": 1, "maximum": Format, "default": 1, "description": "format of this file"},
		"version": {"type": "string", "description": "version of the program that wrote this file"},
	} {
		root["properties"].(map[string]any)[key] = value
	}
	out, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic(err) // it is made of maps and strings alone
	}
	return append(out, '\n')
}

// schemaOf describes a setting, or a section of them, by its default.
func schemaOf(v reflect.Value, doc string) map[string]any {
	s := map[string]any{}
	if doc != "" {
		s["description"] = doc
	}
	switch v.Interface().(type) {
	case Duration:
		s["type"], s["pattern"], s["default"] = "string", `^([0-9]+d|([0-9.]+(h|m|s|ms|us|ns))+)$`, v.Interface()
		return s
	case Size:
		s["type"], s["default"] = []string{"string", "integer"}, v.Interface()
		return s
	case secret.Places:
		text := map[string]any{"type": "string", "minLength": 1}
		s["type"], s["propertyNames"] = "object", map[string]any{"pattern": secret.Pattern}
		s["additionalProperties"] = map[string]any{
			"type": "object", "properties": map[string]any{"env": text, "file": text},
			"additionalProperties": false, "minProperties": 1, "maxProperties": 1,
		}
		return s
	}
	switch v.Kind() {
	case reflect.Struct:
		properties := map[string]any{}
		for i := range v.NumField() {
			f := v.Type().Field(i)
			properties[f.Tag.Get("json")] = schemaOf(v.Field(i), f.Tag.Get("doc"))
		}
		s["type"], s["properties"], s["additionalProperties"] = "object", properties, false
	case reflect.Slice:
		s["type"] = "array"
		s["items"] = itemSchema(v.Type().Elem())
	case reflect.Bool:
		s["type"], s["default"] = "boolean", v.Bool()
	case reflect.Int:
		s["type"], s["minimum"], s["default"] = "integer", 0, v.Int()
	default:
		s["type"], s["default"] = "string", v.String()
	}
	return s
}

// itemSchema describes a type of values that have no defaults of ours: an item of a list,
// and what is in it. The tag doc of a field is its description; the tag check is
// "required", or the values that it may have. Numbers are prices and counts, so none is
// negative.
func itemSchema(t reflect.Type) map[string]any {
	switch t.Kind() {
	case reflect.Pointer:
		return itemSchema(t.Elem())
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": itemSchema(t.Elem())}
	case reflect.Struct:
		properties, required := map[string]any{}, []string{}
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "-" || !f.IsExported() {
				continue
			}
			p := itemSchema(f.Type)
			if doc := f.Tag.Get("doc"); doc != "" {
				p["description"] = doc
			}
			switch check := f.Tag.Get("check"); check {
			case "":
			case "required":
				required = append(required, name)
				if f.Type.Kind() == reflect.String {
					p["minLength"] = 1
				}
			default:
				p["enum"] = strings.Split(check, "|")
			}
			properties[name] = p
		}
		s := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
		if len(required) > 0 {
			s["required"] = required
		}
		return s
	case reflect.Slice:
		if t == reflect.TypeFor[json.RawMessage]() {
			return map[string]any{"type": "object"}
		}
		return map[string]any{"type": "array", "items": itemSchema(t.Elem())}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return map[string]any{"type": "integer", "minimum": 0}
	case reflect.Float64:
		return map[string]any{"type": "number", "minimum": 0}
	}
	return map[string]any{"type": "string"}
}
