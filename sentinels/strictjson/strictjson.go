package strictjson

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/sentinel-runtime/sentinel/internal/textcut"
)

// Limits bound a text before anything is built from it. A field that is 0 has
// its default.
type Limits struct {
	Bytes       int // of the whole text. Default 1 MiB
	Depth       int // of arrays and objects within each other. Default 64
	Keys        int // of all objects together. Default 10,000
	StringBytes int // of one string as written, without its quotes. Default 256 KiB
	Values      int // of all kinds and at any depth: {} of three bytes can take hundreds in memory. Default no limit
}

// Default limits.
const (
	DefaultBytes       = 1 << 20
	DefaultDepth       = 64
	DefaultKeys        = 10_000
	DefaultStringBytes = 256 << 10
)

// Unlimited returns the limits for JSON from within the process: that of jsontext for
// the depth, and no others.
func Unlimited() Limits {
	return Limits{Bytes: math.MaxInt, Depth: 10_000, Keys: math.MaxInt, StringBytes: math.MaxInt, Values: math.MaxInt}
}

func (l Limits) withDefaults() Limits {
	set := func(field *int, value int) {
		if *field == 0 {
			*field = value
		}
	}
	set(&l.Bytes, DefaultBytes)
	set(&l.Depth, DefaultDepth)
	set(&l.Keys, DefaultKeys)
	set(&l.StringBytes, DefaultStringBytes)
	set(&l.Values, math.MaxInt)
	return l
}

// Check reports the first problem of text as an [*Error], or nil.
func Check(text []byte, limits Limits) error {
	limits = limits.withDefaults()
	if limits.allow(text) && jsontext.Value(text).IsValid() {
		return nil // the usual case, at the speed of encoding/json.Valid
	}
	return check(text, limits)
}

// check finds the first problem token by token, so that it knows the place.
func check(text []byte, limits Limits) error {
	if len(text) > limits.Bytes {
		return &Error{Offset: 0, Line: 1, Column: 1, Kind: Limit,
			Reason: fmt.Sprintf("the text has %d bytes, the limit is %d", len(text), limits.Bytes)}
	}
	if bytes.HasPrefix(text, byteOrderMark) {
		return &Error{Offset: 0, Line: 1, Column: 1, Kind: Syntax, Reason: StartsWithMark}
	}
	d := jsontext.NewDecoder(bytes.NewReader(text))
	keys, values, whole := 0, 0, 0
	for {
		if d.StackDepth() == 0 {
			if whole++; whole == 2 {
				if rest := skipSpace(text, int(d.InputOffset())); rest < len(text) {
					return newError(text, rest, "", Syntax, TextAfterValue)
				}
				return nil
			}
		}
		token, err := d.ReadToken()
		if err != nil {
			return syntaxError(text, d, err)
		}
		end := int(d.InputOffset())
		refuse := func(offset int, kind Kind, format string, args ...any) error {
			return newError(text, offset, path(d), kind, fmt.Sprintf(format, args...))
		}
		if kind := token.Kind(); kind != '}' && kind != ']' && (kind != '"' || !isKey(d)) {
			if values++; values > limits.Values {
				return refuse(end-1, Limit, "there are more than %d values", limits.Values)
			}
		}
		switch token.Kind() {
		case '{', '[':
			if d.StackDepth() > limits.Depth {
				return refuse(end-1, Limit, "arrays and objects are nested more than %d deep", limits.Depth)
			}
		case '"':
			start := lastString(text, end)
			if n := end - start - 2; n > limits.StringBytes {
				return refuse(start, Limit, "a string has %d bytes, the limit is %d", n, limits.StringBytes)
			}
			if isKey(d) {
				if keys++; keys > limits.Keys {
					return refuse(start, Limit, "there are more than %d keys", limits.Keys)
				}
			}
		case '0':
			if literal := token.String(); !NumberInRange(literal) {
				return refuse(end-len(literal), Value, "the number %.40s is out of range", literal)
			}
		}
	}
}

// allow reports whether text, if it is valid JSON, is within the limits and all
// its numbers are in range. It may report false for a text that is.
func (l Limits) allow(text []byte) bool {
	if len(text) > l.Bytes || MayExceed(text, l.Values) {
		return false
	}
	depth, keys := 0, 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '"':
			start := i
			i = stringEnd(text, i)
			if i-start-1 > l.StringBytes {
				return false
			}
		case '{', '[':
			if depth++; depth > l.Depth {
				return false
			}
		case '}', ']':
			depth--
		case ':':
			if keys++; keys > l.Keys {
				return false
			}
		case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			start := i
			for i+1 < len(text) && isNumberByte(text[i+1]) {
				i++
			}
			if literal := text[start : i+1]; numberMayExceed(literal) && !NumberInRange(string(literal)) {
				return false
			}
		}
	}
	return true
}

// MayExceed reports whether a text may have more than n values; see [Limits]. Of valid JSON
// it is wrong only for empty arrays and objects, each of which counts twice.
func MayExceed(text []byte, n int) bool {
	if len(text) < n { // each takes a byte
		return false
	}
	values := 1 // one more behind each beginning and each comma
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = stringEnd(text, i)
		case '{', '[', ',':
			if values++; values > n {
				return true
			}
		}
	}
	return false
}

// numberMayExceed reports whether a number has to be read to know whether it is in range: no
// short literal without an exponent is out of range.
func numberMayExceed(literal []byte) bool {
	return len(literal) > 300 || bytes.ContainsAny(literal, "eE")
}

func isNumberByte(c byte) bool {
	return c >= '0' && c <= '9' || c == '.' || c == '-' || c == '+' || c == 'e' || c == 'E'
}

// Decode checks text as [Check] does and stores its value in v, a pointer. Keys
// match the fields of structs exactly; a key without a field is an error. A null
// sets a field to its zero value. A part of a text that was checked needs no limits; with
// [Unlimited] it is read once and not twice, and the range of numbers in raw values counts as
// checked.
func Decode(text []byte, v any, limits Limits) error {
	if limits != Unlimited() {
		if err := Check(text, limits); err != nil {
			return err
		}
	}
	return decode(text, v, json.RejectUnknownMembers(true))
}

// DecodeOpen is [Decode] for formats that others extend: keys that the type does
// not have are ignored.
func DecodeOpen(text []byte, v any, limits Limits) error {
	if limits != Unlimited() {
		if err := Check(text, limits); err != nil {
			return err
		}
	}
	return decode(text, v)
}

// DecodeForeign is [DecodeOpen] for what programs of others answer: model servers, forges,
// plugins. They cut text within a character and repeat what they were given, so bytes that
// are not UTF-8 and halves of surrogate pairs are read as U+FFFD. The caller bounds the text.
func DecodeForeign(text []byte, v any) error {
	return decode(text, v, jsontext.AllowInvalidUTF8(true))
}

// decode stores the value of a text in v.
func decode(text []byte, v any, options ...json.Options) error {
	err := json.Unmarshal(text, v, options...)
	var semantic *json.SemanticError
	var syntactic *jsontext.SyntacticError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &syntactic): // of a text that was not checked
		return syntaxError(text, jsontext.NewDecoder(bytes.NewReader(text)), err)
	case !errors.As(err, &semantic):
		return newError(text, 0, "", Value, strings.TrimPrefix(err.Error(), "json: "))
	case errors.Is(err, json.ErrUnknownName):
		key := semantic.JSONPointer.LastToken()
		offset, place := locate(text, semantic.JSONPointer, true)
		return newError(text, offset, place, Unknown, fmt.Sprintf("unknown key %q", textcut.Mark(key, maxKey)))
	}
	offset, place := locate(text, semantic.JSONPointer, false)
	var inner *Error
	if errors.As(semantic.Err, &inner) { // from a method of the type
		return newError(text, offset, place, inner.Kind, inner.Reason)
	}
	own := implements(semantic.GoType, unmarshalers...) || implements(semantic.GoType, textUnmarshaler) && semantic.JSONKind == '"'
	if semantic.Err != nil && own {
		return newError(text, offset, place, Value, semantic.Err.Error())
	}
	return newError(text, offset, place, Type, typeReason(semantic))
}

var (
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
	unmarshalers    = []reflect.Type{reflect.TypeFor[json.Unmarshaler](), reflect.TypeFor[json.UnmarshalerFrom]()}
)

// implements reports whether a pointer to t has the methods of one of the
// interfaces, so that an error about it may be the type's own.
func implements(t reflect.Type, interfaces ...reflect.Type) bool {
	return t != nil && slices.ContainsFunc(interfaces, reflect.PointerTo(t).Implements)
}

func typeReason(e *json.SemanticError) string {
	want, got := goKind(e.GoType), jsonKind(e.JSONKind)
	switch {
	case want == "" && e.Err != nil:
		return e.Err.Error()
	case e.JSONKind == '0' && want == "an integer":
		return fmt.Sprintf("want an integer in range, got %.40s", e.JSONValue)
	case got == want || want == "":
		return fmt.Sprintf("invalid value: %v", e.Err)
	case got == "":
		return "want " + want
	}
	return fmt.Sprintf("want %s, got %s", want, got)
}

func goKind(t reflect.Type) string {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil {
		return ""
	}
	if implements(t, textUnmarshaler) {
		return "a string"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "a boolean"
	case reflect.String:
		return "a string"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Map, reflect.Struct:
		return "an object"
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	if t.Kind() >= reflect.Int && t.Kind() <= reflect.Uintptr {
		return "an integer"
	}
	return ""
}

func jsonKind(k jsontext.Kind) string {
	switch k {
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '{', '}':
		return "an object"
	case '[', ']':
		return "an array"
	}
	return ""
}

// NumberInRange reports whether a float64 can hold a JSON number. The schema
// library computes with exact fractions, which for a large exponent, also a
// negative one, would take all memory; so those are out of range too.
func NumberInRange(literal string) bool {
	if i := strings.IndexAny(literal, "eE"); i >= 0 {
		if exponent, err := strconv.Atoi(literal[i+1:]); err != nil || exponent > 400 || exponent < -400 {
			return false
		}
	}
	_, err := strconv.ParseFloat(literal, 64)
	return err == nil && len(literal) <= 400
}

func syntaxError(text []byte, d *jsontext.Decoder, err error) *Error {
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return newError(text, len(text), path(d), Syntax, "the text ends before the value does")
	case !errors.As(err, &syntactic):
		return newError(text, int(d.InputOffset()), path(d), Syntax, err.Error())
	}
	offset := min(int(syntactic.ByteOffset), len(text))
	if errors.Is(err, jsontext.ErrDuplicateName) {
		first, place := locate(text, syntactic.JSONPointer, true)
		line, column := position(text, first)
		offset = skipSpace(text, offset)
		if offset < len(text) && text[offset] == ',' {
			offset = skipSpace(text, offset+1)
		}
		return newError(text, offset, place, Duplicate,
			fmt.Sprintf("duplicate key %q, first at line %d, column %d", textcut.Mark(syntactic.JSONPointer.LastToken(), maxKey), line, column))
	}
	reason := syntactic.Err.Error()
	if strings.Contains(reason, "UTF-8") || strings.Contains(reason, "surrogate") {
		reason = "text that is not UTF-8: an invalid byte or half of a surrogate pair"
	}
	return newError(text, offset, path(d), Syntax, reason)
}

// isKey reports whether the string that d read last is a key of an object.
func isKey(d *jsontext.Decoder) bool {
	kind, length := d.StackIndex(d.StackDepth())
	return kind == '{' && length%2 == 1
}

// lastString returns the offset of the quote that opens the string ending at
// end. Escaped quotes are preceded by an odd number of backslashes.
func lastString(text []byte, end int) int {
	for i := end - 2; i >= 0; i-- {
		if text[i] != '"' {
			continue
		}
		slashes := 0
		for j := i - 1; j >= 0 && text[j] == '\\'; j-- {
			slashes++
		}
		if slashes%2 == 0 {
			return i
		}
	}
	return 0
}

func skipSpace(text []byte, i int) int {
	for i < len(text) && strings.IndexByte(" \t\r\n", text[i]) >= 0 {
		i++
	}
	return i
}
