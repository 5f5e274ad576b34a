package sentinels

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// A node is one value of a text, with its position.
type node struct {
	kind    byte   // 'n' null, 't' 'f' booleans, '"', '0' number, '{', '['
	start   int    // offset
	path    string // as written
	text    string // the value of a string, the literal of a number
	members []member
	items   []*node
}

type member struct {
	name  string
	start int // offset of the name
	value *node
}

// member returns the value of a key, or nil.
func (n *node) member(name string) *node {
	for i := range n.members {
		if n.members[i].name == name {
			return n.members[i].value
		}
	}
	return nil
}

// find returns the node at a path as in [Problem], or the nearest one around it.
func (n *node) find(path string) *node {
	for _, token := range strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		next := n.member(token)
		for _, name := range writtenAs[token] {
			if next == nil {
				next = n.member(name)
			}
		}
		if i, err := strconv.Atoi(token); err == nil && n.kind == '[' && i >= 0 && i < len(n.items) {
			next = n.items[i]
		}
		if next == nil {
			return n
		}
		n = next
	}
	return n
}

// writtenAs are the aliases that a stored key may have in a file.
var writtenAs = map[string][]string{
	"steps": {"pipeline"}, "definition": {"pipeline"}, "check": {"if"}, "data": {"payload"}, "cronExpression": {"schedule", "cron"},
}

// typeName returns the node's type for a message.
func (n *node) typeName() string {
	switch n.kind {
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '{':
		return "an object"
	}
	return "an array"
}

// count returns the number of values in n, including n.
func (n *node) count() int {
	total := 1
	for _, item := range n.items {
		total += item.count()
	}
	for _, m := range n.members {
		total += m.value.count()
	}
	return total
}

// raw returns the value as canonical JSON.
func (n *node) raw() json.RawMessage { return n.append(nil) }

func (n *node) append(b []byte) []byte {
	switch n.kind {
	case 'n':
		return append(b, "null"...)
	case 't':
		return append(b, "true"...)
	case 'f':
		return append(b, "false"...)
	case '0':
		return append(b, n.text...)
	case '"':
		return appendString(b, n.text)
	case '[':
		b = append(b, '[')
		for i, item := range n.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = item.append(b)
		}
		return append(b, ']')
	}
	members := slices.Clone(n.members)
	slices.SortFunc(members, func(a, c member) int { return strings.Compare(a.name, c.name) })
	b = append(b, '{')
	for i, m := range members {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, m.name), ':')
		b = m.value.append(b)
	}
	return append(b, '}')
}

// value returns the node in the form that the schema library expects.
func (n *node) value() any {
	switch n.kind {
	case 't', 'f':
		return n.kind == 't'
	case '0':
		return json.Number(n.text)
	case '"':
		return n.text
	case '[':
		items := make([]any, len(n.items))
		for i, item := range n.items {
			items[i] = item.value()
		}
		return items
	case '{':
		object := make(map[string]any, len(n.members))
		for _, m := range n.members {
			object[m.name] = m.value.value()
		}
		return object
	}
	return nil
}

// builder converts parsed values to nodes and reports what hujson accepts and a
// definition does not: duplicate keys, lone surrogates, numbers out of range.
type builder struct {
	src      *source
	problems Problems
}

func (b *builder) add(offset int, path string, kind Kind, hint, message string) {
	b.problems = append(b.problems, b.src.problem(offset, path, kind, hint, message))
}

// node converts a parsed value to a node. Of two equal keys it keeps the first, which
// is the one that the problem refers to.
func (b *builder) node(v *hujson.Value, path string) *node {
	n := &node{kind: byte(v.Value.Kind()), start: v.StartOffset, path: path}
	switch value := v.Value.(type) {
	case hujson.Literal:
		switch n.kind {
		case '"':
			n.text = b.str(value, n.start, path)
		case '0':
			n.text = string(value)
			if !strictjson.NumberInRange(n.text) {
				b.add(n.start, path, KindValue, "", fmt.Sprintf("the number %.40s is out of range", n.text))
				n.text = "1" // valid in most fields, so that one mistake is one problem
			}
		}
	case *hujson.Array:
		n.items = make([]*node, len(value.Elements))
		for i := range value.Elements {
			n.items[i] = b.node(&value.Elements[i], path+"["+strconv.Itoa(i)+"]")
		}
	case *hujson.Object:
		seen := make(map[string]int, len(value.Members))
		for i := range value.Members {
			m := &value.Members[i]
			at := m.Name.StartOffset
			name := b.str(m.Name.Value.(hujson.Literal), at, path)
			inner := join(path, name)
			child := b.node(&m.Value, inner)
			if first, duplicate := seen[name]; duplicate {
				line, column := b.src.position(first)
				b.add(at, inner, KindDuplicate, "", fmt.Sprintf("duplicate key %q, first at line %d, column %d", name, line, column))
				continue
			}
			seen[name] = at
			n.members = append(n.members, member{name, at, child})
		}
	}
	return n
}

// str returns the value of a string literal. It reports a lone surrogate, which has
// no UTF-8 form and would silently become another character.
func (b *builder) str(literal hujson.Literal, at int, path string) string {
	for i := 0; i+5 < len(literal); i++ {
		if literal[i] != '\\' {
			continue
		}
		if literal[i+1] != 'u' {
			i++
			continue
		}
		switch unit := hex4(literal[i+2 : i+6]); {
		case unit >= 0xd800 && unit < 0xdc00 && i+11 < len(literal) && literal[i+6] == '\\' && literal[i+7] == 'u' &&
			hex4(literal[i+8:i+12])&0xfc00 == 0xdc00:
			i += 11
		case unit&0xf800 == 0xd800:
			b.add(at, path, KindSyntax, "", fmt.Sprintf("the escape %s is half of a surrogate pair", literal[i:i+6]))
			return "\ufffd"
		default:
			i += 5
		}
	}
	return unquote(literal)
}

// hex4 returns the value of four hexadecimal digits. The parser has checked them.
func hex4(digits []byte) uint64 {
	u, err := strconv.ParseUint(string(digits), 16, 32)
	if err != nil {
		return 0
	}
	return u
}

// join returns the path of a key. A key that is not an identifier is quoted.
func join(path, name string) string {
	if !isName(name) && name != "$schema" && name != "$ref" {
		return path + "[" + strconv.Quote(name) + "]"
	}
	if path == "" {
		return name
	}
	return path + "." + name
}
