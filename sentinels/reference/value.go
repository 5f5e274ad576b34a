package reference

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// Path returns the part of value at a path such as "a.b[0].c"; a leading "." is
// optional. As in a condition, "length" is the length of an array or a string. value
// must be valid JSON.
func Path(value json.RawMessage, path string) (json.RawMessage, bool) {
	value = bytes.TrimSpace(value)
	for path != "" {
		if len(value) == 0 {
			return nil, false
		}
		var key string
		index := -1
		if path[0] == '[' {
			end := strings.IndexByte(path, ']')
			i, err := strconv.Atoi(path[1:max(end, 1)])
			if err != nil || i < 0 {
				return nil, false
			}
			index, path = i, path[end+1:]
		} else {
			path = strings.TrimPrefix(path, ".")
			end := strings.IndexAny(path, ".[")
			if end < 0 {
				end = len(path)
			}
			if key, path = path[:end], path[end:]; key == "" {
				return nil, false
			}
		}
		next, ok := part(value, key, index)
		if !ok {
			return nil, false
		}
		value = next
	}
	return value, true
}

// part returns one member or one item of value; index is -1 for a member.
func part(value json.RawMessage, key string, index int) (found json.RawMessage, ok bool) {
	switch {
	case value[0] == '{' && index < 0:
		strictjson.EachMember(value, func(name, inner []byte) bool {
			if strictjson.Unquote(name) == key {
				found, ok = inner, true
			}
			return true // the last of two equal names is used, as in encoding/json
		})
	case value[0] == '[' && index >= 0:
		strictjson.EachItem(value, func(inner []byte) bool {
			if index == 0 {
				found, ok = inner, true
			}
			index--
			return !ok
		})
	case value[0] == '[' && key == "length":
		n := 0
		strictjson.EachItem(value, func([]byte) bool { n++; return true })
		return strconv.AppendInt(nil, int64(n), 10), true
	case value[0] == '"' && key == "length":
		n := len(utf16.Encode([]rune(strictjson.Unquote(value))))
		return strconv.AppendInt(nil, int64(n), 10), true
	}
	return found, ok
}

// Text returns a value as it is inserted in other text (clause F6 of the format): a string as it
// is, an object with a string "text" as that string, an array of such objects as one
// line for each, null as nothing, and every other value as JSON.
func Text(value json.RawMessage) string {
	value = bytes.TrimSpace(value)
	if len(value) == 0 {
		return ""
	}
	switch value[0] {
	case 'n':
		return ""
	case '"':
		return strictjson.Unquote(value)
	case '{':
		if text, ok := ownText(value); ok {
			return text
		}
	case '[':
		var lines []string
		all := true
		strictjson.EachItem(value, func(item []byte) bool {
			text, ok := ownText(item)
			lines, all = append(lines, text), ok
			return all
		})
		if all && len(lines) > 0 {
			return strings.Join(lines, "\n")
		}
	}
	var b bytes.Buffer
	if json.Compact(&b, value) != nil {
		return string(value)
	}
	return b.String()
}

// ownText returns the "text" of an object that has one.
func ownText(value []byte) (string, bool) {
	if len(value) == 0 || value[0] != '{' {
		return "", false
	}
	text, ok := part(value, "text", -1)
	if !ok || text[0] != '"' {
		return "", false
	}
	return strictjson.Unquote(text), true
}
