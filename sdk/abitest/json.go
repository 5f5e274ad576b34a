package abitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// decode reads JSON and keeps numbers as they are written. Text after the value is an
// error.
func decode(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if d.More() {
		return nil, fmt.Errorf("text after the JSON value")
	}
	return v, nil
}

// encode writes a value without escapes that JSON does not need.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("abitest: %v in a value of the kit", err))
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// must reads JSON in the tables of the kit.
func must(text string) any {
	v, err := decode([]byte(text))
	if err != nil {
		panic(fmt.Sprintf("abitest: %q: %v", text, err))
	}
	return v
}

// An extra reports whether an additional key is allowed.
type extra func(key string, value any) bool

// diff returns the differences of got and want. allowed decides about additional keys of
// objects in got; nil allows none.
func diff(path string, want, got any, allowed extra) []string {
	switch want := want.(type) {
	case map[string]any:
		have, ok := got.(map[string]any)
		if !ok {
			break
		}
		var faults []string
		for _, key := range slices.Sorted(maps.Keys(want)) {
			v, ok := have[key]
			if !ok {
				faults = append(faults, fmt.Sprintf("%s.%s is missing, want %s", path, key, brief(string(encode(want[key])), 200)))
				continue
			}
			faults = append(faults, diff(path+"."+key, want[key], v, allowed)...)
		}
		for _, key := range slices.Sorted(maps.Keys(have)) {
			if _, ok := want[key]; !ok && (allowed == nil || !allowed(key, have[key])) {
				faults = append(faults, fmt.Sprintf("%s.%s is %s, want it absent", path, key, brief(string(encode(have[key])), 200)))
			}
		}
		return faults
	case []any:
		have, ok := got.([]any)
		if !ok || len(have) != len(want) {
			break
		}
		var faults []string
		for i := range want {
			faults = append(faults, diff(path+"["+strconv.Itoa(i)+"]", want[i], have[i], allowed)...)
		}
		return faults
	case json.Number:
		if have, ok := got.(json.Number); ok && sameNumber(want, have) {
			return nil
		}
	default:
		if want == got {
			return nil
		}
	}
	return []string{fmt.Sprintf("%s is %s, want %s", path, brief(string(encode(got)), 300), brief(string(encode(want)), 300))}
}

// sameNumber compares numbers by value: 1e3 is 1000.
func sameNumber(a, b json.Number) bool {
	if a == b {
		return true
	}
	x, err1 := a.Float64()
	y, err2 := b.Float64()
	return err1 == nil && err2 == nil && x == y
}

// empty reports whether a value is null, false, 0, "", or a list or object of such
// values.
func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case json.Number:
		return sameNumber(v, "0")
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		for _, item := range v {
			if !empty(item) {
				return false
			}
		}
		return true
	}
	return false
}
