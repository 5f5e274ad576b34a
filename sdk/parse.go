package sdk

import (
	"strconv"
	"unicode/utf8"
	"unsafe"
)

// MaxDepth limits the nesting of lists and objects in a text that [Parse] reads.
const MaxDepth = 256

// A SyntaxError is the first position at which a text is not JSON for [Parse].
type SyntaxError struct {
	Offset int // in bytes
	Reason string
}

// Error returns the reason and its position.
func (e *SyntaxError) Error() string {
	return "json byte " + strconv.Itoa(e.Offset) + ": " + e.Reason
}

// Parse reads one JSON text. It is strict: UTF-8 only, no duplicate keys, no
// text after the value, no deeper than [MaxDepth]. Half of a surrogate pair in
// an escape becomes U+FFFD. Values share the memory of the text.
func Parse(text string) (Value, error) { return (&parser{text: text}).all() }

// all reads the whole text.
func (p *parser) all() (Value, error) {
	v, err := p.value(0)
	if err != nil {
		return Value{}, err
	}
	p.space()
	if p.pos < len(p.text) {
		return Value{}, p.fail("text after the value")
	}
	return v, nil
}

type parser struct {
	text    string
	pos     int
	handles bool // the text comes from the host, which may write handles
}

//go:noinline
func (p *parser) fail(reason string) error { return &SyntaxError{Offset: p.pos, Reason: reason} }

func (p *parser) space() {
	for p.pos < len(p.text) {
		switch p.text[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

// next returns the next byte that is not a space, 0 at the end, without reading it.
//
//go:noinline
func (p *parser) next() byte {
	p.space()
	if p.pos < len(p.text) {
		return p.text[p.pos]
	}
	return 0
}

func (p *parser) value(depth int) (Value, error) {
	switch b := p.next(); {
	case b == '{' || b == '[':
		if depth >= MaxDepth {
			return Value{}, p.fail("nested too deeply")
		}
		if b == '{' {
			return p.object(depth + 1)
		}
		return p.list(depth + 1)
	case b == '"':
		s, escaped, err := p.str()
		if escaped && len(s) <= longText {
			s, escaped = unescape(s), false
		}
		return Value{&node{kind: KindString, raw: escaped, text: s}}, err
	case b == '-' || (b >= '0' && b <= '9'):
		return p.number()
	case b == '@' && p.handles:
		return p.handle()
	case b == 0 && p.pos >= len(p.text):
		return Value{}, p.fail("unexpected end")
	}
	for _, word := range [...]struct {
		text string
		kind Kind
	}{{"true", KindBool}, {"false", KindBool}, {"null", KindNull}} {
		if end := p.pos + len(word.text); end <= len(p.text) && p.text[p.pos:end] == word.text {
			p.pos = end
			if word.kind == KindNull {
				return Null(), nil
			}
			return scalar(KindBool, word.text), nil
		}
	}
	return Value{}, p.fail("expected a value")
}

func (p *parser) list(depth int) (Value, error) {
	p.pos++ // [
	n := &node{kind: KindList}
	if p.next() == ']' {
		p.pos++
		return Value{n}, nil
	}
	for {
		item, err := p.value(depth)
		if err != nil {
			return Value{}, err
		}
		n.items = append(n.items, item)
		switch p.next() {
		case ',':
			p.pos++
		case ']':
			p.pos++
			return Value{n}, nil
		default:
			return Value{}, p.fail("expected , or ]")
		}
	}
}

// indexed is the number of fields from which duplicates are looked up in a map instead
// of by comparing all keys.
const indexed = 16

func (p *parser) object(depth int) (Value, error) {
	p.pos++ // {
	n := &node{kind: KindObject}
	if p.next() == '}' {
		p.pos++
		return Value{n}, nil
	}
	var seen map[string]bool
	for {
		if p.next() != '"' {
			return Value{}, p.fail("expected a key")
		}
		at := p.pos
		key, escaped, err := p.str()
		if err != nil {
			return Value{}, err
		}
		if escaped {
			key = unescape(key)
		}
		if len(n.keys) == indexed {
			seen = make(map[string]bool, 4*indexed)
			for _, k := range n.keys {
				seen[k] = true
			}
		}
		if seen[key] || (seen == nil && n.find(key) >= 0) {
			return Value{}, &SyntaxError{Offset: at, Reason: "duplicate key"}
		}
		if seen != nil {
			seen[key] = true
		}
		if p.next() != ':' {
			return Value{}, p.fail("expected :")
		}
		p.pos++
		item, err := p.value(depth)
		if err != nil {
			return Value{}, err
		}
		n.keys, n.items = append(n.keys, key), append(n.items, item)
		switch p.next() {
		case ',':
			p.pos++
		case '}':
			p.pos++
			return Value{n}, nil
		default:
			return Value{}, p.fail("expected , or }")
		}
	}
}

func (p *parser) digits() bool {
	start := p.pos
	for p.pos < len(p.text) && p.text[p.pos] >= '0' && p.text[p.pos] <= '9' {
		p.pos++
	}
	return p.pos > start
}

func (p *parser) accept(set string) bool {
	if p.pos < len(p.text) {
		for i := range len(set) {
			if p.text[p.pos] == set[i] {
				p.pos++
				return true
			}
		}
	}
	return false
}

func (p *parser) number() (Value, error) {
	start := p.pos
	p.accept("-")
	if !p.accept("0") && !p.digits() {
		return Value{}, p.fail("expected a digit")
	}
	if p.accept(".") && !p.digits() {
		return Value{}, p.fail("expected a digit")
	}
	if p.accept("eE") {
		p.accept("+-")
		if !p.digits() {
			return Value{}, p.fail("expected a digit")
		}
	}
	return scalar(KindNumber, p.text[start:p.pos]), nil
}

// longText is the length of a text with escapes from which it is decoded only when it is read, each time:
// most steps pass long texts on.
const longText = 4 << 10

// str reads a string. It returns the text between the quotes, a slice of what is parsed, and whether it
// has escapes.
func (p *parser) str() (text string, escaped bool, err error) {
	p.pos++ // "
	start := p.pos
	for p.pos < len(p.text) {
		switch p.text[p.pos] {
		case '"':
			p.pos++
			return p.text[start : p.pos-1], escaped, nil
		case '\\':
			p.pos++
			if _, err := p.escape(); err != nil {
				return "", false, err
			}
			escaped = true
		default:
			if err := p.skip(); err != nil {
				return "", false, err
			}
		}
	}
	return "", false, p.fail("string without an end")
}

// skip skips characters inside a string, at least one: those of ASCII up to a quote, an escape or
// another character, or one that is not of ASCII. Texts are long, so it copies no byte alone.
func (p *parser) skip() error {
	begin := p.pos
	for p.pos < len(p.text) {
		if b := p.text[p.pos]; b < ' ' || b >= utf8.RuneSelf || b == '"' || b == '\\' {
			break
		}
		p.pos++
	}
	if p.pos > begin {
		return nil
	}
	if p.text[p.pos] < ' ' {
		return p.fail("control character in a string")
	}
	r, size := utf8.DecodeRuneInString(p.text[p.pos:])
	if r == utf8.RuneError && size == 1 {
		return p.fail("not UTF-8")
	}
	p.pos += size
	return nil
}

// unescape decodes the text of a string that was parsed.
//
//go:noinline
func unescape(text string) string {
	p := parser{text: text}
	out := make([]byte, 0, len(text))
	for p.pos < len(text) {
		start := p.pos
		for p.pos < len(text) && text[p.pos] != '\\' {
			p.pos++
		}
		out = append(out, text[start:p.pos]...)
		if p.pos < len(text) {
			p.pos++
			r, _ := p.escape() // valid
			out = utf8.AppendRune(out, r)
		}
	}
	return unsafe.String(unsafe.SliceData(out), len(out)) // nothing writes it any more
}

//go:noinline
func (p *parser) escape() (rune, error) {
	if p.pos >= len(p.text) {
		return 0, p.fail("unexpected end")
	}
	b := p.text[p.pos]
	p.pos++
	switch b {
	case '"', '\\', '/':
		return rune(b), nil
	case 'b':
		return '\b', nil
	case 'f':
		return '\f', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'u':
		r, ok := p.hex(p.pos)
		if !ok {
			return 0, p.fail("expected four hex digits")
		}
		p.pos += 4
		return p.pair(r), nil
	}
	p.pos--
	return 0, p.fail("unknown escape")
}

// pair joins a high surrogate with the low one in the escape that follows.
func (p *parser) pair(r rune) rune {
	if r < 0xD800 || r > 0xDFFF {
		return r
	}
	if r < 0xDC00 && p.pos+6 <= len(p.text) && p.text[p.pos:p.pos+2] == `\u` {
		if low, ok := p.hex(p.pos + 2); ok && low >= 0xDC00 && low <= 0xDFFF {
			p.pos += 6
			return 0x10000 + (r-0xD800)<<10 + (low - 0xDC00)
		}
	}
	return utf8.RuneError
}

func (p *parser) hex(at int) (r rune, ok bool) {
	if at+4 > len(p.text) {
		return 0, false
	}
	for _, b := range []byte(p.text[at : at+4]) {
		switch {
		case b >= '0' && b <= '9':
			r = r<<4 | rune(b-'0')
		case b >= 'a' && b <= 'f':
			r = r<<4 | rune(b-'a'+10)
		case b >= 'A' && b <= 'F':
			r = r<<4 | rune(b-'A'+10)
		default:
			return 0, false
		}
	}
	return r, true
}
