package strictjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sentinel-runtime/sentinel/internal/textcut"
)

// A Tree is the syntax tree of a text, with every problem that [Check] would report
// one after the other.
type Tree struct {
	Text   []byte
	Root   *Node    // nil if the text is not JSON, or above a limit
	Errors []*Error // by position

	places *places // created for the first position
}

// A Node is one value of a text, with its place. What is between nodes, such as comments,
// is the text between their offsets.
type Node struct {
	Kind       byte   // 'n' null, 't' and 'f' booleans, '"' string, '0' number, '[' array, '{' object
	Start, End int    // offsets in the text
	Text       string // the value of a string, the literal of a number
	Members    []NodeMember
	Items      []*Node

	parent *Node
	key    string // of the member
	index  int    // of the item; -1 for a member
}

// A NodeMember is one member of an object, with the place of its key.
type NodeMember struct {
	Name       string
	Start, End int // offsets of the key
	Value      *Node
}

// Parse reads a text into a tree. Unlike [Check] it continues after problems that leave
// the text readable: of equal keys it keeps the first, half of a surrogate pair becomes
// U+FFFD, and a number that is out of range becomes 1. The text must not change later.
func Parse(text []byte, limits Limits) *Tree {
	t := &Tree{Text: text}
	p := parser{tree: t, limits: limits.withDefaults()}
	if p.start() {
		if root := p.value(nil, "", -1); p.end() {
			t.Root = root
		}
	}
	slices.SortStableFunc(t.Errors, func(a, b *Error) int { return a.Offset - b.Offset })
	return t
}

// Position returns the line and the column of an offset, both from 1; the column counts
// characters. It takes the same time for every offset, whatever the length of the line.
func (t *Tree) Position(offset int) (line, column int) {
	if t.places == nil {
		t.places = newPlaces(t.Text)
	}
	return t.places.of(offset)
}

// Path returns where n is, as "steps[2].x"; "" for the root.
func (n *Node) Path() string {
	if n.parent == nil {
		return ""
	}
	if n.index >= 0 {
		return n.parent.Path() + "[" + strconv.Itoa(n.index) + "]"
	}
	return Join(n.parent.Path(), n.key)
}

// Key returns the key of the member that n is the value of, "" for an item and the root.
func (n *Node) Key() string { return n.key }

// Parent returns the object or array that n is in, nil for the root.
func (n *Node) Parent() *Node { return n.parent }

// Detach makes n the root of its tree, so that paths begin there.
func (n *Node) Detach() *Node {
	n.parent = nil
	return n
}

// Member returns the value of a key, or nil.
func (n *Node) Member(name string) *Node {
	for i := range n.Members {
		if n.Members[i].Name == name {
			return n.Members[i].Value
		}
	}
	return nil
}

// Find returns the node at a path as in an [Error], or the nearest one around it.
// aliases returns other names that the key may have in the text; nil means none.
func (n *Node) Find(path string, aliases func(key string) []string) *Node {
	for path != "" {
		key, index, rest := cutPath(path)
		next := (*Node)(nil)
		switch {
		case index >= 0 && index < len(n.Items):
			next = n.Items[index]
		case index < 0:
			next = n.Member(key)
			if next == nil && aliases != nil {
				for _, alias := range aliases(key) {
					if next = n.Member(alias); next != nil {
						break
					}
				}
			}
		}
		if next == nil {
			break
		}
		n, path = next, rest
	}
	return n
}

// Count returns the number of values in n, including n.
func (n *Node) Count() int {
	total := 1
	for _, item := range n.Items {
		total += item.Count()
	}
	for i := range n.Members {
		total += n.Members[i].Value.Count()
	}
	return total
}

// A parser builds the tree of one text.
type parser struct {
	tree   *Tree
	limits Limits
	d      *jsontext.Decoder
	keys   int
	values int
	failed bool
	free   []Node // allocated together, because texts have thousands of nodes
}

// start checks what concerns the whole text, and reports whether it can be read.
func (p *parser) start() bool {
	text := p.tree.Text
	switch {
	case len(text) > p.limits.Bytes:
		p.fail(0, nil, Limit, fmt.Sprintf("the text has %d bytes, the limit is %d", len(text), p.limits.Bytes))
	case bytes.HasPrefix(text, byteOrderMark):
		p.fail(0, nil, Syntax, StartsWithMark)
	case !utf8.Valid(text):
		bad := 0
		for r, size := utf8.DecodeRune(text); r != utf8.RuneError || size != 1; r, size = utf8.DecodeRune(text[bad:]) {
			bad += size
		}
		p.fail(bad, nil, Syntax, fmt.Sprintf("byte 0x%02x %s", text[bad], NotUTF8))
	}
	// Duplicates and surrogates are found below, where reading can continue.
	p.d = jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	return !p.failed
}

// end reports whether the text was read and nothing follows the value.
func (p *parser) end() bool {
	if p.failed {
		return false
	}
	if rest := skipSpace(p.tree.Text, int(p.d.InputOffset())); rest < len(p.tree.Text) {
		p.fail(rest, nil, Syntax, TextAfterValue)
	}
	return !p.failed
}

// add reports a problem after which reading continues.
func (p *parser) add(offset int, path string, kind Kind, reason string) {
	line, column := p.tree.Position(offset)
	p.tree.Errors = append(p.tree.Errors, &Error{Offset: offset, Line: line, Column: column, Path: textcut.Mark(path, maxPath), Kind: kind, Reason: reason})
}

// fail reports a problem in the value in, after which the rest cannot be read.
func (p *parser) fail(offset int, in *Node, kind Kind, reason string) {
	p.failed = true
	path := ""
	if in != nil {
		path = in.Path()
	}
	p.add(offset, path, kind, reason)
}

// read reads one token and returns its kind, its text and its offset. in is the value
// around it.
func (p *parser) read(in *Node) (kind byte, literal []byte, start int) {
	start = next(p.tree.Text, p.d)
	token, err := p.d.ReadToken()
	if err != nil {
		e := syntaxError(p.tree.Text, p.d, err)
		p.fail(e.Offset, in, e.Kind, e.Reason)
		return 0, nil, start
	}
	literal = p.tree.Text[start:p.d.InputOffset()]
	kind = byte(token.Kind())
	switch {
	case kind == '"' && len(literal)-2 > p.limits.StringBytes:
		p.fail(start, in, Limit, fmt.Sprintf("a string has %d bytes, the limit is %d", len(literal)-2, p.limits.StringBytes))
	case (kind == '{' || kind == '[') && p.d.StackDepth() > p.limits.Depth:
		p.fail(start, in, Limit, fmt.Sprintf("arrays and objects are nested more than %d deep", p.limits.Depth))
	}
	return kind, literal, start
}

// node returns a new node.
func (p *parser) node(parent *Node, key string, index int) *Node {
	if len(p.free) == 0 {
		p.free = make([]Node, min(64, 1+len(p.tree.Text)/16))
	}
	n := &p.free[0]
	p.free = p.free[1:]
	n.parent, n.key, n.index = parent, key, index
	return n
}

// value reads one value. The result is not complete if reading failed.
func (p *parser) value(parent *Node, key string, index int) *Node {
	n := p.node(parent, key, index)
	if p.values++; p.values > p.limits.Values {
		p.fail(int(p.d.InputOffset()), parent, Limit, fmt.Sprintf("there are more than %d values", p.limits.Values))
		return n
	}
	var literal []byte
	if n.Kind, literal, n.Start = p.read(n); p.failed {
		return n
	}
	switch n.Kind {
	case '"':
		n.Text = p.str(literal, n.Start, n)
	case '0':
		n.Text = string(literal)
		if numberMayExceed(literal) && !NumberInRange(n.Text) {
			p.add(n.Start, n.Path(), Value, fmt.Sprintf("the number %.40s is out of range", n.Text))
			n.Text = "1" // valid in most places, so that one mistake is one problem
		}
	case '{':
		p.members(n)
	case '[':
		for i := 0; !p.failed && p.d.PeekKind() != ']'; i++ {
			n.Items = append(n.Items, p.value(n, "", i))
		}
		p.close(n)
	}
	n.End = int(p.d.InputOffset())
	return n
}

// close reads the end of an array or object.
func (p *parser) close(n *Node) {
	if !p.failed {
		p.read(n)
	}
}

// fewMembers is the number of members up to which comparing keys one by one is faster
// than a map.
const fewMembers = 12

// members reads the members of an object, of which the first token was read.
func (p *parser) members(n *Node) {
	var seen map[string]int // offsets of the keys, once there are many
	for !p.failed && p.d.PeekKind() != '}' {
		kind, literal, at := p.read(n)
		if p.failed {
			return
		}
		if kind == '"' {
			if p.keys++; p.keys > p.limits.Keys {
				p.fail(at, n, Limit, fmt.Sprintf("there are more than %d keys", p.limits.Keys))
				return
			}
		}
		m := NodeMember{Name: p.str(literal, at, n), Start: at, End: at + len(literal)}
		first := firstOf(n, seen, m.Name)
		if first >= 0 {
			line, column := p.tree.Position(first)
			p.add(at, Join(n.Path(), m.Name), Duplicate, fmt.Sprintf("duplicate key %q, first at line %d, column %d", textcut.Mark(m.Name, maxKey), line, column))
		}
		m.Value = p.value(n, m.Name, -1)
		if first >= 0 {
			continue
		}
		if n.Members = append(n.Members, m); len(n.Members) == fewMembers {
			seen = make(map[string]int)
			for _, before := range n.Members {
				seen[before.Name] = before.Start
			}
		} else if seen != nil {
			seen[m.Name] = at
		}
	}
	p.close(n)
}

// firstOf returns the offset of the key name of an object, -1 if it is new.
func firstOf(n *Node, seen map[string]int, name string) int {
	if seen != nil {
		if at, ok := seen[name]; ok {
			return at
		}
		return -1
	}
	for i := range n.Members {
		if n.Members[i].Name == name {
			return n.Members[i].Start
		}
	}
	return -1
}

// str returns the value of a string literal. It reports half of a surrogate pair, which
// has no UTF-8 form and would silently become another character.
func (p *parser) str(literal []byte, at int, n *Node) string {
	inner := literal[1 : len(literal)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner)
	}
	if half := halfPair(inner); half != "" {
		p.add(at, n.Path(), Syntax, fmt.Sprintf("the escape %s is half of a surrogate pair", half))
		return "\ufffd"
	}
	return Unquote(literal)
}

// halfPair returns the first escape that is half of a surrogate pair, or "".
func halfPair(s []byte) string {
	for i := 0; i+5 < len(s); i++ {
		if s[i] != '\\' {
			continue
		}
		if s[i+1] != 'u' {
			i++
			continue
		}
		switch unit := hex4(s[i+2 : i+6]); {
		case unit>>10 == 0xd800>>10 && i+11 < len(s) && s[i+6] == '\\' && s[i+7] == 'u' && hex4(s[i+8:i+12])>>10 == 0xdc00>>10:
			i += 11
		case unit>>11 == 0xd800>>11:
			return string(s[i : i+6])
		default:
			i += 5
		}
	}
	return ""
}

// hex4 returns the value of four hexadecimal digits, which the decoder has checked.
func hex4(digits []byte) uint64 {
	u, err := strconv.ParseUint(string(digits), 16, 32)
	if err != nil {
		return 0
	}
	return u
}

// Unquote returns the value of a valid string literal with its quotes. Bytes that are
// not UTF-8 become U+FFFD.
func Unquote(literal []byte) string {
	if inner, ok := plain(literal); ok {
		return string(inner)
	}
	return string(AppendUnquote(nil, literal))
}

// AppendUnquote appends the value of a string literal, as [Unquote].
func AppendUnquote(b, literal []byte) []byte {
	if inner, ok := plain(literal); ok {
		return append(b, inner...)
	}
	b, _ = jsontext.AppendUnquote(b, literal) // an error is about bytes that became U+FFFD
	return b
}

// IsString reports whether a string literal has the value s, as [Unquote].
func IsString(literal []byte, s string) bool {
	for i := 1; i < len(literal)-1; i++ {
		if c := literal[i]; c == '\\' || c >= utf8.RuneSelf {
			return Unquote(literal) == s
		}
	}
	return len(literal) == len(s)+2 && string(literal[1:len(s)+1]) == s
}

// plain returns the bytes between the quotes if they are the value, without escapes.
func plain(literal []byte) ([]byte, bool) {
	if len(literal) < 2 {
		return nil, true
	}
	inner := literal[1 : len(literal)-1]
	return inner, bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner)
}

// TypeName returns the type of n for a message, such as "a string".
func (n *Node) TypeName() string { return jsonKind(jsontext.Kind(n.Kind)) }

// Canonical returns the value without white space, object keys sorted by their bytes
// and strings in one form; numbers stay as written. Two values are equal if their
// canonical forms are.
func (n *Node) Canonical() json.RawMessage { return n.appendCanonical(nil) }

func (n *Node) appendCanonical(b []byte) []byte {
	switch n.Kind {
	case 'n':
		return append(b, "null"...)
	case 't':
		return append(b, "true"...)
	case 'f':
		return append(b, "false"...)
	case '0':
		return append(b, n.Text...)
	case '"':
		return AppendString(b, n.Text)
	case '[':
		b = append(b, '[')
		for i, item := range n.Items {
			if i > 0 {
				b = append(b, ',')
			}
			b = item.appendCanonical(b)
		}
		return append(b, ']')
	}
	members := n.Members
	byName := func(a, c NodeMember) int { return strings.Compare(a.Name, c.Name) }
	if !slices.IsSortedFunc(members, byName) {
		members = slices.SortedFunc(slices.Values(members), byName)
	}
	b = append(b, '{')
	for i := range members {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(AppendString(b, members[i].Name), ':')
		b = members[i].Value.appendCanonical(b)
	}
	return append(b, '}')
}

// Any returns the value as nil, bool, [json.Number], string, []any and map[string]any.
func (n *Node) Any() any {
	switch n.Kind {
	case 't', 'f':
		return n.Kind == 't'
	case '0':
		return json.Number(n.Text)
	case '"':
		return n.Text
	case '[':
		items := make([]any, len(n.Items))
		for i, item := range n.Items {
			items[i] = item.Any()
		}
		return items
	case '{':
		object := make(map[string]any, len(n.Members))
		for _, m := range n.Members {
			object[m.Name] = m.Value.Any()
		}
		return object
	}
	return nil
}

// AppendString appends s as a JSON string in which only characters that must be escaped
// are, and bytes that are not UTF-8 become U+FFFD.
func AppendString[T ~string | ~[]byte](b []byte, s T) []byte {
	b, _ = jsontext.AppendQuote(b, s) // an error is about bytes that became U+FFFD
	return b
}

// Equal reports whether two nodes are the same value, however it is written.
func (n *Node) Equal(other *Node) bool {
	if n.Kind != other.Kind || n.Text != other.Text || len(n.Items) != len(other.Items) || len(n.Members) != len(other.Members) {
		return false
	}
	for i, item := range n.Items {
		if !item.Equal(other.Items[i]) {
			return false
		}
	}
	for i := range n.Members {
		m := &n.Members[i]
		in := other.Members[i].Value
		if other.Members[i].Name != m.Name { // another order
			in = other.Member(m.Name)
		}
		if in == nil || !m.Value.Equal(in) {
			return false
		}
	}
	return true
}
