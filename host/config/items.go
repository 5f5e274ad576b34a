package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// A mistake is a value in a setting that its schema does not allow.
type mistake struct{ path, text string }

// Error names the place in the setting.
func (m mistake) Error() string {
	if m.path == "" {
		return m.text
	}
	return m.path + ": " + m.text
}

// mistakes returns all that is wrong in a setting that is a list of objects, nil for any
// other setting.
func (f leaf) mistakes(raw []byte) []mistake {
	t := f.value.Type()
	if t.Kind() != reflect.Slice || t.Elem().Kind() != reflect.Struct {
		return nil
	}
	value, err := strictjson.Any(raw, strictjson.Limits{})
	if bad := (*strictjson.Error)(nil); errors.As(err, &bad) {
		return []mistake{{bad.Path, bad.Reason}}
	}
	c := &checker{}
	c.value("", value, map[string]any{"type": "array", "items": itemSchema(t.Elem())})
	return c.found
}

// checker compares values with a schema of [itemSchema].
type checker struct{ found []mistake }

func (c *checker) add(path, format string, args ...any) {
	c.found = append(c.found, mistake{path, fmt.Sprintf(format, args...)})
}

func (c *checker) value(path string, v any, schema map[string]any) {
	if want := schema["type"].(string); kindOf(v) != want && (want != "number" || kindOf(v) != "integer") {
		c.add(path, "want %s, got %s", article(want), article(kindOf(v)))
		return
	}
	switch v := v.(type) {
	case []any:
		for i, item := range v {
			c.value(path+"["+strconv.Itoa(i)+"]", item, schema["items"].(map[string]any))
		}
	case map[string]any:
		c.object(path, v, schema)
	case json.Number:
		if n, err := v.Float64(); err != nil || n < 0 {
			c.add(path, "%s is negative", v)
		}
	case string:
		if choices, ok := schema["enum"].([]string); ok && !slices.Contains(choices, v) {
			c.add(path, "%q is none of %s", v, strings.Join(choices, ", "))
		}
		if schema["minLength"] != nil && v == "" {
			c.add(path, "is empty")
		}
	}
}

func (c *checker) object(path string, v, schema map[string]any) {
	properties, closed := schema["properties"].(map[string]any)
	known := slices.Sorted(maps.Keys(properties))
	for _, key := range slices.Sorted(maps.Keys(v)) {
		at := strictjson.Join(path, key)
		inner, ok := properties[key].(map[string]any)
		if !closed {
			if inner, _ = schema["additionalProperties"].(map[string]any); inner == nil {
				continue // any object
			}
			ok = true
		}
		if !ok {
			c.add(at, "unknown key %q%s; known: %s", key, suggestion(key, known), strings.Join(known, ", "))
			continue
		}
		c.value(at, v[key], inner)
	}
	required, _ := schema["required"].([]string)
	for _, key := range required {
		if _, ok := v[key]; !ok {
			c.add(path, "%q is missing", key)
		}
	}
}

// kindOf returns the type of a value as schemas name it.
func kindOf(v any) string {
	switch v := v.(type) {
	case map[string]any:
		return "object"
	case []any:
		return "array"
	case string:
		return "string"
	case bool:
		return "boolean"
	case json.Number:
		if n, err := v.Float64(); err == nil && n == math.Trunc(n) && math.Abs(n) <= 1<<53 {
			return "integer"
		}
		return "number"
	}
	return "null"
}

// article puts the article before a type.
func article(kind string) string {
	switch kind {
	case "object", "array", "integer":
		return "an " + kind
	case "null":
		return kind
	}
	return "a " + kind
}
