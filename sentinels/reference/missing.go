package reference

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// maxListed is the number of names that an error lists.
const maxListed = 12

// missing returns the error for a reference whose path value does not have. In a shell line, the hint has its quotes.
func missing(value json.RawMessage, ref Reference, shell bool) error {
	value = bytes.TrimSpace(value)
	at, _ := firstMissing(value, ref.Path)
	before := ref.Path[:at]
	if part, ok := Path(value, before); ok {
		value = part
	}
	e := &MissingError{Reference: ref.String(), Exists: "$" + ref.Name + before + " " + exists(value)}
	if len(value) > 2 && value[0] == '"' {
		if text := strings.TrimSpace(strictjson.Unquote(value)); text != "" && (text[0] == '{' || text[0] == '[') && json.Valid([]byte(text)) {
			e.Hint = `the text is JSON: add "parse": "json" to the step that sets it`
			return e
		}
	}
	if rest := ref.Path[at:]; len(value) > 0 && strings.IndexByte("{[n", value[0]) < 0 && rest != "" && rest[0] == '.' {
		if e.Hint = `write "${` + ref.Name + before + "}" + rest + `" if ` + rest + " is text behind the value"; shell {
			e.Hint = `write "$` + ref.Name + before + `"` + rest + " if " + rest + " is text behind the value"
		}
	}
	return e
}

// exists describes a value that lacks a part: the names of an object, or its type.
func exists(value json.RawMessage) string {
	if len(value) == 0 {
		return "has no value"
	}
	switch value[0] {
	case '{':
		var names []string
		more := 0
		strictjson.EachMember(value, func(name, _ []byte) bool {
			if len(names) == maxListed {
				more++
			} else {
				names = append(names, strictjson.Unquote(name))
			}
			return true
		})
		switch {
		case len(names) == 0:
			return "is an empty object"
		case more > 0:
			return fmt.Sprintf("has %s and %d more", strings.Join(names, ", "), more)
		}
		return "has " + strings.Join(names, ", ")
	case '[':
		n := 0
		strictjson.EachItem(value, func([]byte) bool { n++; return true })
		return fmt.Sprintf("is a list with %d items", n)
	case '"':
		return "is a text"
	case 'n':
		return "is null"
	case 't', 'f':
		return "is a boolean"
	}
	return "is a number"
}
