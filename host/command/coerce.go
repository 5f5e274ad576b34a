package command

import (
	"bytes"
	"encoding/json"
	"math/big"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// paramLimits bound the parameters of one call. sdk/ABI.md A8 bounds those of a
// step lower.
var paramLimits = strictjson.Limits{Bytes: 4 << 20, Depth: maxParamDepth, Keys: 100_000, StringBytes: 4 << 20}

// decodeParams reads one JSON value, keeping numbers as written. An empty text
// and null are an empty object. The error is a *strictjson.Error.
func decodeParams(text json.RawMessage) (any, error) {
	if trimmed := bytes.TrimSpace(text); len(trimmed) == 0 || string(trimmed) == "null" {
		return map[string]any{}, nil
	}
	return strictjson.Any(text, paramLimits)
}

// coercer brings values closer to their schema. For every caller it rewrites a
// whole number (3.0, 3e0) to an integer where one is wanted, and a duration ("5m")
// to one where that is milliseconds; lenient, for models, it also does what a patient reader would: a number or a truth value
// in a string, JSON in a string, one value where a list is wanted, an optional
// field that is null. What it cannot help it leaves for the validator to name.
type coercer struct {
	root    map[string]any
	lenient bool
}

// maxCoerceDepth ends schemas that refer to themselves.
const maxCoerceDepth = 64

// maxParamDepth bounds the nesting of parameters. A definition of the greatest
// depth fits in as one of them.
const maxParamDepth = strictjson.DefaultDepth + 8

// coerce returns value, changed where that helps. It changes lists and objects in
// place: they were decoded for this call alone.
func (c coercer) coerce(schema map[string]any, value any, depth int) any {
	schema = c.resolve(schema)
	if schema == nil || depth > maxCoerceDepth {
		return value
	}
	if c.lenient {
		value = convert(schema, value)
	}
	switch v := value.(type) {
	case json.Number:
		if wants(schema, "integer") && !wants(schema, "number") {
			return wholeNumber(v)
		}
	case []any:
		items, _ := schema["items"].(map[string]any)
		for i := range v {
			v[i] = c.coerce(items, v[i], depth+1)
		}
	case map[string]any:
		c.coerceFields(schema, v, depth)
	}
	return value
}

// coerceFields coerces the fields of an object. An optional field that is null is
// taken out for a model: many write null for "not given".
func (c coercer) coerceFields(schema, object map[string]any, depth int) {
	properties, _ := schema["properties"].(map[string]any)
	rest, _ := schema["additionalProperties"].(map[string]any)
	for name, field := range object {
		sub, known := properties[name].(map[string]any)
		if !known {
			sub = rest
		}
		if field == nil && c.lenient && known && len(typesOf(c.resolve(sub))) > 0 && !wants(c.resolve(sub), "null") && !required(schema, name) {
			delete(object, name)
			continue
		}
		if text, ok := field.(string); ok && wants(c.resolve(sub), "integer") {
			if ms, ok := sentinels.Duration(name, text); ok {
				field = json.Number(strconv.FormatInt(ms, 10))
			}
		}
		object[name] = c.coerce(sub, field, depth+1)
	}
}

// resolve follows a local reference (#/$defs/x), at most eight hops.
func (c coercer) resolve(schema map[string]any) map[string]any {
	for range 8 {
		ref, ok := schema["$ref"].(string)
		path, local := strings.CutPrefix(ref, "#/")
		if !ok || !local {
			return schema
		}
		at := c.root
		for part := range strings.SplitSeq(path, "/") {
			at, _ = at[part].(map[string]any)
		}
		schema = at
	}
	return nil
}

// convert changes the kind of a value that the schema does not accept as it is.
func convert(schema map[string]any, value any) any {
	if len(typesOf(schema)) == 0 {
		return value // any type will do
	}
	if text, ok := value.(string); ok && !wants(schema, "string") {
		if v, ok := fromText(schema, strings.TrimSpace(text)); ok {
			value = v
		}
	}
	if wants(schema, "string") && !wantsKindOf(schema, value) {
		switch v := value.(type) {
		case json.Number:
			return v.String()
		case bool:
			if v {
				return "true"
			}
			return "false"
		}
	}
	if text, ok := value.(string); ok {
		return enumCase(schema, text)
	}
	if _, isList := value.([]any); !isList && value != nil && wants(schema, "array") && !wantsKindOf(schema, value) {
		return []any{value}
	}
	return value
}

// fromText reads a string as the first fitting kind of value.
func fromText(schema map[string]any, text string) (any, bool) {
	if wants(schema, "boolean") {
		switch strings.ToLower(text) {
		case "true":
			return true, true
		case "false":
			return false, true
		}
	}
	if wants(schema, "integer") || wants(schema, "number") {
		if n, ok := number(text); ok {
			return n, true
		}
	}
	if wants(schema, "object") || wants(schema, "array") {
		if v, err := decodeParams(json.RawMessage(text)); err == nil && text != "" {
			switch v.(type) {
			case map[string]any:
				return v, wants(schema, "object") || wants(schema, "array")
			case []any:
				return v, wants(schema, "array")
			}
		}
		if wants(schema, "array") {
			return []any{text}, true
		}
	}
	return nil, false
}

// number reads text as a JSON number, or reports false.
func number(text string) (json.Number, bool) {
	var n json.Number
	if text == "" || len(text) > 64 || strings.HasPrefix(text, `"`) || json.Unmarshal([]byte(text), &n) != nil || n == "" {
		return "", false
	}
	return n, true
}

// wholeNumber writes 3.0 and 3e0 as 3. Exponents beyond 64 digits stay as they
// are: the validator refuses them without computing them.
func wholeNumber(n json.Number) json.Number {
	text := n.String()
	if !strings.ContainsAny(text, ".eE") || len(text) > 64 {
		return n
	}
	if _, exponent, ok := strings.Cut(strings.ToLower(text), "e"); ok && len(strings.TrimLeft(exponent, "+-0")) > 2 {
		return n
	}
	if r, ok := new(big.Rat).SetString(text); ok && r.IsInt() {
		return json.Number(r.Num().String())
	}
	return n
}

// enumCase returns the enum's own spelling of text.
func enumCase(schema map[string]any, text string) string {
	values, _ := schema["enum"].([]any)
	found := text
	for _, v := range values {
		word, ok := v.(string)
		if ok && word == text {
			return text
		}
		if ok && strings.EqualFold(word, text) {
			found = word
		}
	}
	return found
}

// typesOf returns the kinds a schema accepts, none if it does not say.
func typesOf(schema map[string]any) []string {
	switch t := schema["type"].(type) {
	case string:
		return []string{t}
	case []any:
		var names []string
		for _, v := range t {
			if s, ok := v.(string); ok {
				names = append(names, s)
			}
		}
		return names
	}
	return nil
}

// wants reports whether a schema names a kind; a number may be an integer.
func wants(schema map[string]any, kind string) bool {
	for _, t := range typesOf(schema) {
		if t == kind || (t == "number" && kind == "integer") {
			return true
		}
	}
	return false
}

// wantsKindOf reports whether the schema accepts the value's kind as it is.
func wantsKindOf(schema map[string]any, value any) bool {
	switch value.(type) {
	case nil:
		return wants(schema, "null")
	case bool:
		return wants(schema, "boolean")
	case json.Number:
		return wants(schema, "number") || wants(schema, "integer")
	case string:
		return wants(schema, "string")
	case []any:
		return wants(schema, "array")
	case map[string]any:
		return wants(schema, "object")
	}
	return false
}

// required reports whether an object must have the field.
func required(schema map[string]any, name string) bool {
	list, _ := schema["required"].([]any)
	for _, v := range list {
		if v == name {
			return true
		}
	}
	return false
}
