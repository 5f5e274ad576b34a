package cond

import (
	"errors"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/dop251/goja"

	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

var (
	errNotJSON = errors.New("not JSON")
	errTooDeep = errors.New("nested too deep")
)

// measure returns the nesting depth of a JSON text by counting brackets outside
// strings. It does not validate the text.
func measure(text []byte) int {
	depth, deepest := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = strictjson.SkipString(text, i) - 1
		case '[', '{':
			depth++
			deepest = max(deepest, depth)
		case ']', '}':
			depth--
		}
	}
	return deepest
}

// decoder converts a JSON text to a goja value, as JSON.parse would and four
// times as fast. It accepts strict JSON. Of duplicate keys the last value is
// used.
type decoder struct {
	js    *goja.Runtime
	text  string
	pos   int
	depth int    // levels left
	big   string // a whole number that became a BigInt, "" if none did
}

// big is a whole number of the text that became a BigInt, "" if there is none.
func decode(vm *goja.Runtime, text string, depth int) (v goja.Value, big string, err error) {
	d := decoder{js: vm, text: text, depth: depth}
	v, err = d.value()
	if err == nil && d.skip() != 0 {
		err = errNotJSON
	}
	return v, d.big, err
}

// skip skips white space and returns the next byte, 0 at the end.
func (d *decoder) skip() byte {
	for ; d.pos < len(d.text); d.pos++ {
		switch c := d.text[d.pos]; c {
		case ' ', '\t', '\r', '\n':
		case 0:
			return 1 // not valid in JSON, but 0 means the end here
		default:
			return c
		}
	}
	return 0
}

func (d *decoder) value() (goja.Value, error) {
	switch c := d.skip(); c {
	case '{', '[':
		if d.depth--; d.depth < 0 {
			return nil, errTooDeep
		}
		d.pos++
		v, err := d.compound(c)
		d.depth++
		return v, err
	case '"':
		return d.string16()
	case 't':
		return d.word("true", d.js.ToValue(true))
	case 'f':
		return d.word("false", d.js.ToValue(false))
	case 'n':
		return d.word("null", goja.Null())
	default:
		return d.number()
	}
}

func (d *decoder) word(word string, v goja.Value) (goja.Value, error) {
	if !strings.HasPrefix(d.text[d.pos:], word) {
		return nil, errNotJSON
	}
	d.pos += len(word)
	return v, nil
}

func (d *decoder) compound(open byte) (goja.Value, error) {
	if open == '[' {
		return d.array()
	}
	return d.object()
}

func (d *decoder) array() (goja.Value, error) {
	var items []any
	if d.skip() == ']' {
		d.pos++
		return d.js.NewArray(), nil
	}
	for {
		v, err := d.value()
		if err != nil {
			return nil, err
		}
		items = append(items, v)
		switch d.skip() {
		case ',':
			d.pos++
		case ']':
			d.pos++
			return d.js.NewArray(items...), nil
		default:
			return nil, errNotJSON
		}
	}
}

func (d *decoder) object() (goja.Value, error) {
	o := d.js.NewObject()
	if d.skip() == '}' {
		d.pos++
		return o, nil
	}
	for {
		if d.skip() != '"' {
			return nil, errNotJSON
		}
		key, err := d.string16()
		if err != nil {
			return nil, err
		}
		if d.skip() != ':' {
			return nil, errNotJSON
		}
		d.pos++
		v, err := d.value()
		if err != nil {
			return nil, err
		}
		// A plain assignment, because Object.prototype has no properties: see tameSource.
		if err := o.Set(key.String(), v); err != nil {
			return nil, err
		}
		switch d.skip() {
		case ',':
			d.pos++
		case '}':
			d.pos++
			return o, nil
		default:
			return nil, errNotJSON
		}
	}
}

// maxExact is the number up to which a 64-bit float is exact.
const maxExact = 1 << 53

// number parses JSON's grammar of numbers, which is narrower than Go's. A whole number that a
// float would round is a BigInt, which keeps its digits.
func (d *decoder) number() (goja.Value, error) {
	start := d.pos
	at := func() byte {
		if d.pos < len(d.text) {
			return d.text[d.pos]
		}
		return 0
	}
	digits := func() int {
		from := d.pos
		for at() >= '0' && at() <= '9' {
			d.pos++
		}
		return d.pos - from
	}
	if at() == '-' {
		d.pos++
	}
	first := at()
	n := digits()
	if n == 0 || first == '0' && n > 1 {
		return nil, errNotJSON
	}
	integer := true
	if at() == '.' {
		integer = false
		d.pos++
		if digits() == 0 {
			return nil, errNotJSON
		}
	}
	if c := at(); c == 'e' || c == 'E' {
		integer = false
		d.pos++
		if c := at(); c == '+' || c == '-' {
			d.pos++
		}
		if digits() == 0 {
			return nil, errNotJSON
		}
	}
	word := d.text[start:d.pos]
	if integer && n <= 15 && word != "-0" {
		i, _ := strconv.ParseInt(word, 10, 64)
		return d.js.ToValue(i), nil
	}
	f, err := strconv.ParseFloat(word, 64)
	if integer && math.Abs(f) >= maxExact && n <= maxDigits {
		if exact, ok := new(big.Int).SetString(word, 10); ok && exact.CmpAbs(big.NewInt(maxExact)) > 0 {
			d.big = word
			return d.js.ToValue(exact), nil
		}
	}
	if err != nil && !math.IsInf(f, 0) { // too large a number is Infinity in JavaScript
		return nil, errNotJSON
	}
	return d.js.ToValue(f), nil
}

// string16 parses a string. A string without escapes is not copied.
func (d *decoder) string16() (goja.String, error) {
	start := d.pos + 1
	for i := start; i < len(d.text); i++ {
		switch c := d.text[i]; {
		case c == '"':
			d.pos = i + 1
			s := d.text[start:i]
			if !utf8.ValidString(s) {
				return nil, errNotJSON
			}
			return d.js.ToValue(s).(goja.String), nil
		case c == '\\':
			return d.escaped(start, i)
		case c < ' ':
			return nil, errNotJSON
		}
	}
	return nil, errNotJSON
}

// escaped continues a string at its first escape. As in JavaScript, one half of
// a surrogate pair is allowed.
func (d *decoder) escaped(start, i int) (goja.String, error) {
	if !utf8.ValidString(d.text[start:i]) {
		return nil, errNotJSON
	}
	units := utf16.Encode([]rune(d.text[start:i]))
	for i < len(d.text) {
		c := d.text[i]
		switch {
		case c == '"':
			d.pos = i + 1
			return goja.StringFromUTF16(units), nil
		case c < ' ':
			return nil, errNotJSON
		case c == '\\' && i+1 < len(d.text):
			i++
			if at := strings.IndexByte(`"\/bfnrt`, d.text[i]); at >= 0 {
				units = append(units, uint16("\"\\/\b\f\n\r\t"[at]))
				i++
				continue
			}
			if d.text[i] != 'u' || i+5 > len(d.text) {
				return nil, errNotJSON
			}
			for _, c := range []byte(d.text[i+1 : i+5]) {
				if !isHexDigit(c) {
					return nil, errNotJSON
				}
			}
			u, _ := strconv.ParseUint(d.text[i+1:i+5], 16, 16)
			units = append(units, uint16(u))
			i += 5
		default:
			r, size := utf8.DecodeRuneInString(d.text[i:])
			if r == utf8.RuneError && size == 1 {
				return nil, errNotJSON
			}
			units = utf16.AppendRune(units, r)
			i += size
		}
	}
	return nil, errNotJSON
}
