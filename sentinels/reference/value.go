package reference

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// Path returns the part of value at a path such as `a.b[0]["any text"]`; a leading "." is
// optional. As in a condition, "length" is the length of an array or a string. A part
// that is missing beside "?." is null. value must be valid JSON.
func Path(value json.RawMessage, path string) (json.RawMessage, bool) {
	value = bytes.TrimSpace(value)
	if path == "" {
		return value, true
	}
	c := strictjson.NewCursor(value)
	part, ok := find(c, path, false)
	c.Close()
	if !ok && strings.Contains(path, "?.") {
		if at, end := firstMissing(value, path); at < end && (path[at] == '?' || strings.HasPrefix(path[end:], "?.")) {
			return null, true
		}
	}
	return part, ok
}

// firstMissing returns the offsets of the first part of a path that value does not have;
// they are equal if the path is invalid.
func firstMissing(value json.RawMessage, path string) (at, end int) {
	for at < len(path) {
		end = partEnd(path, at, true)
		if at == 0 && nameByte(path[0], true) { // without the leading "."
			end = partEnd("."+path, 0, true) - 1
		}
		if end <= at {
			break
		}
		c := strictjson.NewCursor(value)
		part, ok := find(c, path[at:end], false)
		c.Close()
		if !ok {
			return at, end
		}
		value, at = bytes.TrimSpace(part), end
	}
	return at, at
}

// find reads the next value and returns its part at a path. Of equal names it uses the
// last, as encoding/json does. If the value is within an object whose name may follow
// again, it is read to its end.
func find(c *strictjson.Cursor, path string, within bool) (found json.RawMessage, ok bool) {
	if path == "" {
		found = c.Next()
		return found, found != nil
	}
	key, index, rest, valid := cutPath(path)
	switch kind := c.Kind(); {
	case !valid:
		return nil, false
	case kind == '{' && index < 0:
		for c.Enter(); c.Kind() != 0; {
			if !strictjson.IsString(c.Next(), key) {
				c.Next()
				continue
			}
			last := !within && !mayContain(c.Rest(), key)
			if found, ok = find(c, rest, !last); last {
				return found, ok
			}
			within = true // search the text once, however often the name follows
		}
		c.Leave()
	case kind == '[' && index >= 0:
		for c.Enter(); index > 0 && c.Kind() != 0; index-- {
			c.Next()
		}
		if c.Kind() != 0 {
			found, ok = find(c, rest, within)
		}
		if within {
			c.Leave()
		}
	case (kind == '[' || kind == '"') && key == "length" && rest == "":
		return strconv.AppendInt(nil, int64(length(c)), 10), true
	default:
		c.Next()
	}
	return found, ok
}

// mayContain reports whether a text can contain a string, written with or without escapes.
// It is much faster than reading the text.
func mayContain(text []byte, s string) bool {
	for rest := text; ; {
		at := bytes.Index(rest, []byte(s))
		if at < 0 {
			return bytes.IndexByte(text, '\\') >= 0
		}
		end := at + len(s)
		if at > 0 && rest[at-1] == '"' && end < len(rest) && rest[end] == '"' {
			return true
		}
		rest = rest[at+1:]
	}
}

// cutPath returns the first key or index of a path; index is -1 for a key.
func cutPath(path string) (key string, index int, rest string, ok bool) {
	path = strings.TrimPrefix(path, "?.")
	if path != "" && path[0] == '[' {
		if len(path) > 1 && (path[1] == '"' || path[1] == '\'') {
			key, rest, ok = strings.Cut(path[2:], path[1:2]+"]")
			return key, -1, rest, ok
		}
		end := strings.IndexByte(path, ']')
		index, err := strconv.Atoi(path[1:max(end, 1)])
		return "", index, path[end+1:], err == nil && index >= 0
	}
	path = strings.TrimPrefix(path, ".")
	end := strings.IndexAny(path, ".[?")
	if end < 0 {
		end = len(path)
	}
	return path[:end], -1, path[end:], end > 0
}

// length reads the next value and returns the length of an array in items, of a string
// in UTF-16 code units.
func length(c *strictjson.Cursor) int {
	if c.Kind() == '"' {
		return textLength(c.Next())
	}
	n := 0
	for c.Enter(); c.Kind() != 0; n++ {
		c.Next()
	}
	c.Leave()
	return n
}

// textLength returns the number of UTF-16 code units of a string literal, which may be large: it is not decoded.
func textLength(literal []byte) int {
	n := 0
	for i := 1; i < len(literal)-1; n++ {
		switch c := literal[i]; {
		case c == '\\' && literal[i+1] == 'u':
			i += len(`\u0000`)
		case c == '\\':
			i += len(`\n`)
		case c < utf8.RuneSelf:
			i++
		default:
			r, size := utf8.DecodeRune(literal[i:])
			if i += size; r > 0xffff {
				n++ // two halves
			}
		}
	}
	return n
}

// Text returns a value as it is inserted in other text (clause F6 of the format): a string as it
// is, an object with a string "text" as that string, an array of such objects as one
// line for each, null as nothing, and every other value as JSON.
func Text(value json.RawMessage) string {
	value = bytes.TrimSpace(value)
	if len(value) > 0 && value[0] == '"' {
		return strictjson.Unquote(value)
	}
	return string(appendText(nil, value))
}

// appendText appends the [Text] of a value without white space around it.
func appendText(b []byte, value json.RawMessage) []byte {
	if len(value) == 0 {
		return b
	}
	switch value[0] {
	case 'n':
		return b
	case '"':
		return strictjson.AppendUnquote(b, value)
	case '{', '[':
		c := strictjson.NewCursor(value)
		defer c.Close()
		if text, ok := appendOwnTexts(b, c); ok {
			return text
		}
	}
	compact := bytes.NewBuffer(b)
	if json.Compact(compact, value) != nil {
		return append(b, value...)
	}
	return compact.Bytes()
}

// appendOwnTexts appends the "text" of the next value, or of each item of an array as
// one line. It reports whether there is one, and all of them have it.
func appendOwnTexts(b []byte, c *strictjson.Cursor) ([]byte, bool) {
	if c.Kind() == '{' {
		return appendOwnText(b, c)
	}
	c.Enter()
	b, ok := appendOwnText(b, c)
	for ok && c.Kind() != 0 {
		b, ok = appendOwnText(append(b, '\n'), c)
	}
	return b, ok
}

// appendOwnText reads the next value and appends its "text". It reports whether the
// value is an object with one.
func appendOwnText(b []byte, c *strictjson.Cursor) ([]byte, bool) {
	if c.Kind() != '{' {
		return b, false
	}
	var text []byte
	for c.Enter(); c.Kind() != 0; {
		if name, value := c.Next(), c.Next(); strictjson.IsString(name, "text") {
			text = value
		}
	}
	c.Leave()
	if len(text) == 0 || text[0] != '"' {
		return b, false
	}
	return strictjson.AppendUnquote(b, text), true
}
