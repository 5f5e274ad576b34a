package sentinels

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"

	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// Limits of a definition's text, checked before it is parsed. They are the defaults
// for all JSON that the host reads.
const (
	MaxBytes       = strictjson.DefaultBytes       // of the whole text
	MaxDepth       = strictjson.DefaultDepth       // of nested arrays and objects
	MaxKeys        = strictjson.DefaultKeys        // of all objects together
	MaxStringBytes = strictjson.DefaultStringBytes // of one string as written
)

// A source is a text with an index of its lines, to convert offsets to positions.
type source struct {
	file  string
	text  []byte
	lines []int // offset of the first byte of each line
	runes []int // number of characters before each block, so that long lines are not slower
}

const blockBytes = 1 << 10

// newSource finds the lines and counts the characters once, because there may be
// thousands of problems to locate.
func newSource(file string, text []byte) *source {
	s := &source{file: file, text: text, lines: []int{0}}
	count := 0
	for i, c := range text {
		if i%blockBytes == 0 {
			s.runes = append(s.runes, count)
		}
		if c&0xc0 != 0x80 { // the first byte of a character
			count++
		}
		if c == '\n' {
			s.lines = append(s.lines, i+1)
		}
	}
	return s
}

// characters returns the number of characters before an offset.
func (s *source) characters(offset int) int {
	if len(s.runes) == 0 {
		return 0
	}
	block := min(offset/blockBytes, len(s.runes)-1)
	count := s.runes[block]
	for _, c := range s.text[block*blockBytes : offset] {
		if c&0xc0 != 0x80 {
			count++
		}
	}
	return count
}

// position returns the line and the column, in characters, of an offset.
func (s *source) position(offset int) (line, column int) {
	offset = min(offset, len(s.text))
	lo, hi := 0, len(s.lines)
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; s.lines[mid] <= offset {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo + 1, s.characters(offset) - s.characters(s.lines[lo]) + 1
}

func (s *source) problem(offset int, path string, kind Kind, hint, message string) Problem {
	line, column := s.position(offset)
	return Problem{File: s.file, Line: line, Column: column, Path: path, Kind: kind, Message: message, Hint: hint}
}

// parse converts the text to nodes, and reports duplicate keys and invalid strings.
// root is nil if the text is not JSON.
func parse(file string, text []byte) (*source, *node, Problems) {
	var problems Problems
	if bytes.HasPrefix(text, []byte("\xef\xbb\xbf")) {
		problems = append(problems, Problem{File: file, Line: 1, Column: 1, Kind: KindSyntax,
			Message: "the text starts with a byte order mark", Hint: "save the file as UTF-8 without a byte order mark"})
		text = text[3:]
	}
	src := newSource(file, text)
	if len(text) > MaxBytes {
		return src, nil, append(problems, src.problem(0, "", KindLimit, "",
			fmt.Sprintf("the text has %d bytes, more than %d", len(text), MaxBytes)))
	}
	if !utf8.Valid(text) {
		bad := 0
		for r, size := utf8.DecodeRune(text); r != utf8.RuneError || size != 1; r, size = utf8.DecodeRune(text[bad:]) {
			bad += size
		}
		return src, nil, append(problems, src.problem(bad, "", KindSyntax, "save the file as UTF-8",
			fmt.Sprintf("byte 0x%02x is not UTF-8", text[bad])))
	}
	if offset, message := overLimit(text); message != "" {
		return src, nil, append(problems, src.problem(offset, "", KindLimit, "", message))
	}
	value, err := hujson.Parse(text)
	if err != nil {
		offset, message := src.syntaxError(err)
		hint := ""
		if strings.HasSuffix(message, "after top-level value") {
			hint = "a file holds exactly one definition"
		}
		return src, nil, append(problems, src.problem(offset, "", KindSyntax, hint, message))
	}
	b := builder{src: src, problems: problems}
	root := b.node(&value, "")
	return src, root, b.problems
}

// syntaxError parses the position in the text of an error of hujson, whose columns
// are bytes.
func (s *source) syntaxError(err error) (offset int, message string) {
	text := err.Error()
	var line, column int
	if n, _ := fmt.Sscanf(text, "hujson: line %d, column %d:", &line, &column); n != 2 || line < 1 || line > len(s.lines) {
		return 0, text
	}
	_, text, _ = strings.Cut(text, ": ")
	_, text, _ = strings.Cut(text, ": ")
	return min(s.lines[line-1]+column-1, len(s.text)), text
}

// overLimit scans text for nesting, keys and strings above the limits, without
// allocating. Its result for invalid JSON does not matter: the parser refuses that.
func overLimit(text []byte) (offset int, message string) {
	depth, keys := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			start := i
			i = skipString(text, i) - 1
			if i-start-1 > MaxStringBytes {
				return start, fmt.Sprintf("a string has %d bytes, more than %d", i-start-1, MaxStringBytes)
			}
		case '/':
			i = skipComment(text, i)
		case '{', '[':
			if depth++; depth > MaxDepth {
				return i, fmt.Sprintf("arrays and objects are nested more than %d deep", MaxDepth)
			}
		case '}', ']':
			depth--
		case ':':
			if keys++; keys > MaxKeys {
				return i, fmt.Sprintf("there are more than %d keys", MaxKeys)
			}
		}
	}
	return 0, ""
}

// skipComment returns the offset of the last byte of a comment that starts at
// text[i], or i if none does.
func skipComment(text []byte, i int) int {
	rest := text[i+1:]
	switch {
	case bytes.HasPrefix(rest, []byte("/")):
		if n := bytes.IndexByte(rest, '\n'); n >= 0 {
			return i + 1 + n
		}
		return len(text)
	case bytes.HasPrefix(rest, []byte("*")):
		if n := bytes.Index(rest[1:], []byte("*/")); n >= 0 {
			return i + 2 + n + 1
		}
		return len(text)
	}
	return i
}
