// Package jsondiff compares JSON values for the test kits of the SDK.
package jsondiff

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Decode reads one JSON value and keeps numbers as they are written. Text after the value
// is an error.
func Decode(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("text after the value")
	}
	return v, nil
}

// Any allows all additional keys of objects, see [Compare].
func Any(string, any) bool { return true }

// Compare lists where got differs from want, with the path: "output.rows[2].id: want
// 3, got 4". Values are those of [Decode]. allowed decides about additional keys of objects
// in got; nil allows none.
func Compare(path string, want, got any, allowed func(key string, value any) bool) []string {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			break
		}
		var out []string
		for _, key := range slices.Sorted(maps.Keys(w)) {
			if have, ok := g[key]; ok {
				out = append(out, Compare(join(path, key), w[key], have, allowed)...)
			} else {
				out = append(out, fmt.Sprintf("%s: want %s, is not there", join(path, key), Show(w[key])))
			}
		}
		for _, key := range slices.Sorted(maps.Keys(g)) {
			if _, ok := w[key]; !ok && (allowed == nil || !allowed(key, g[key])) {
				out = append(out, fmt.Sprintf("%s: want nothing, got %s", join(path, key), Show(g[key])))
			}
		}
		return out
	case []any:
		g, ok := got.([]any)
		if !ok {
			break
		}
		var out []string
		for i := range max(len(w), len(g)) {
			at := path + "[" + strconv.Itoa(i) + "]"
			switch {
			case i >= len(g):
				out = append(out, fmt.Sprintf("%s: want %s, is not there", at, Show(w[i])))
			case i >= len(w):
				out = append(out, fmt.Sprintf("%s: want nothing, got %s", at, Show(g[i])))
			default:
				out = append(out, Compare(at, w[i], g[i], allowed)...)
			}
		}
		return out
	case json.Number:
		if g, ok := got.(json.Number); ok && SameNumber(w, g) {
			return nil
		}
	default: // texts, booleans and null compare by ==
		if _, list := got.([]any); list {
			break
		}
		if _, object := got.(map[string]any); !object && want == got {
			return nil
		}
	}
	return []string{fmt.Sprintf("%s: want %s, got %s", path, Show(want), Show(got))}
}

// SameNumber compares numbers by value, so that 1, 1.0 and 1e0 are equal.
func SameNumber(a, b json.Number) bool {
	if a == b {
		return true
	}
	x, errX := a.Float64()
	y, errY := b.Float64()
	return errX == nil && errY == nil && x == y
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// Show formats a value for a message and cuts a long one.
func Show(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	s := strings.TrimSpace(b.String())
	const most = 200
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "..."
	}
	return s
}
