package sdktest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// value reads JSON and keeps numbers as they are written.
func value(text json.RawMessage) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	return v, err
}

// mismatch describes in one line how a request differs from the expected one.
func mismatch(want, got json.RawMessage) string {
	w, errW := value(want)
	g, errG := value(got)
	if errW != nil || errG != nil {
		return fmt.Sprintf("want %s, got %s", want, got)
	}
	return strings.Join(differences("request", w, g, true), "; ")
}

// differences lists where got differs from want, with the path: "output.rows[2].id: want
// 3, got 4". With part, objects of got may have more keys than those of want.
func differences(path string, want, got any, part bool) []string {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			break
		}
		var out []string
		for _, key := range slices.Sorted(maps.Keys(w)) {
			if have, ok := g[key]; ok {
				out = append(out, differences(join(path, key), w[key], have, part)...)
			} else {
				out = append(out, fmt.Sprintf("%s: want %s, is not there", join(path, key), show(w[key])))
			}
		}
		for _, key := range slices.Sorted(maps.Keys(g)) {
			if _, ok := w[key]; !ok && !part {
				out = append(out, fmt.Sprintf("%s: want nothing, got %s", join(path, key), show(g[key])))
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
				out = append(out, fmt.Sprintf("%s: want %s, is not there", at, show(w[i])))
			case i >= len(w):
				out = append(out, fmt.Sprintf("%s: want nothing, got %s", at, show(g[i])))
			default:
				out = append(out, differences(at, w[i], g[i], part)...)
			}
		}
		return out
	case json.Number:
		if g, ok := got.(json.Number); ok && equal(w, g) {
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
	return []string{fmt.Sprintf("%s: want %s, got %s", path, show(want), show(got))}
}

// equal compares numbers by value, so that 1, 1.0 and 1e0 are equal.
func equal(a, b json.Number) bool {
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

// show formats a value for a message and cuts a long one.
func show(v any) string {
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
