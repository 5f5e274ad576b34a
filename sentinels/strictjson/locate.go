package strictjson

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Position returns the line and the column of an offset in text, both from 1;
// the column counts characters.
func Position(text []byte, offset int) (line, column int) { return position(text, offset) }

// Find returns where the value at a path, written as in an [Error], stands in
// text, or the nearest value around it that is there. found is the path of what
// was found.
func Find(text []byte, wanted string) (found string, line, column int) {
	_, offset := descend(text, func(_ int, key string, index int) bool {
		at := found + "[" + strconv.Itoa(index) + "]"
		if index < 0 {
			at = Join(found, key)
		}
		if !within(at, wanted) {
			return false
		}
		found = at
		return true
	})
	line, column = position(text, offset)
	return found, line, column
}

// within reports whether outer is the path inner or that of a value around it.
func within(outer, inner string) bool {
	rest, ok := strings.CutPrefix(inner, outer)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// locate returns the offset and the path of what a pointer names: the value, or
// of a member of an object, if key is set, its key.
func locate(text []byte, pointer jsontext.Pointer, key bool) (offset int, place string) {
	var tokens []string
	for token := range pointer.Tokens() {
		tokens = append(tokens, token)
	}
	keyAt, valueAt := descend(text, func(level int, key string, index int) bool {
		if level == len(tokens) {
			return false
		}
		if index < 0 {
			if key != tokens[level] {
				return false
			}
			place = Join(place, key)
			return true
		}
		if strconv.Itoa(index) != tokens[level] {
			return false
		}
		place += "[" + tokens[level] + "]"
		return true
	})
	if key {
		return keyAt, place
	}
	return valueAt, place
}

// descend walks from the whole value of text into the first member of each
// object and the first item of each array that choose takes, and returns the
// offsets of the value where that ends and of its key. index is -1 for a member.
// It reads every byte once, whatever the text is.
func descend(text []byte, choose func(level int, key string, index int) bool) (keyAt, valueAt int) {
	d := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true))
	for level := 0; ; level++ {
		valueAt = next(text, d)
		at, ok := enter(text, d, func(key string, index int) bool { return choose(level, key, index) })
		if !ok {
			return keyAt, valueAt
		}
		keyAt = at
	}
}

// enter reads an object or array up to the member or item that choose takes, and
// reports whether there is one. keyAt is the offset of a member's key.
func enter(text []byte, d *jsontext.Decoder, choose func(key string, index int) bool) (keyAt int, ok bool) {
	open := d.PeekKind()
	if open != '{' && open != '[' {
		return 0, false
	}
	if _, err := d.ReadToken(); err != nil {
		return 0, false
	}
	for i := 0; ; i++ {
		kind := d.PeekKind()
		if kind == '}' || kind == ']' || kind == 0 { // 0 is an error of the text
			return 0, false
		}
		key, index := "", i
		if open == '{' {
			keyAt = next(text, d)
			token, err := d.ReadToken()
			if err != nil {
				return 0, false
			}
			key, index = token.String(), -1
		}
		if choose(key, index) {
			return keyAt, true
		}
		if d.SkipValue() != nil {
			return 0, false
		}
	}
}

// next returns the offset of the token that d reads next.
func next(text []byte, d *jsontext.Decoder) int {
	i := int(d.InputOffset())
	for i < len(text) && strings.IndexByte(" \t\r\n,:", text[i]) >= 0 {
		i++
	}
	return i
}
