package cond

import (
	"strings"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Names returns the variables a source uses, without "$", each once. For a
// source of the fast lane the list is exact; else it may also hold a name that
// is only mentioned in a string or comment, but never lacks one that is used.
func Names(src string) ([]string, error) {
	s, err := look(src)
	if err != nil {
		return nil, err
	}
	return s.names, nil
}

// Fast reports whether the fast lane takes a source, given variables of at most
// 64 KB.
func Fast(src string) bool {
	s, err := look(src)
	return err == nil && s.judgement == fast
}

// look judges a source of any length without a parser that could be harmed.
func look(src string) (*shape, *abi.Error) {
	if len(src) > maxSource {
		return nil, errf(abi.Limit, "source: %d bytes, more than %d", len(src), maxSource)
	}
	s := &shape{judgement: beyond, reason: "its length", at: fastSource}
	if len(src) <= fastSource {
		if s = examine(src); s.judgement == wrong {
			return nil, s.err
		}
	}
	if s.judgement == beyond {
		if err := survey(src); err != nil {
			return nil, err
		}
		s.names = mentions(src)
	}
	return s, nil
}

// survey holds a source that will be parsed to what a parser can bear. It
// counts brackets without knowing strings from code, so it is stricter than
// needed for text full of open brackets.
func survey(src string) *abi.Error {
	if !utf8.ValidString(src) {
		return badAt(src, 0, "not UTF-8")
	}
	depth, prefixes := 0, 0
	for i := 0; i < len(src); i++ {
		c := src[i]
		switch c {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth = max(0, depth-1)
		}
		// A run of prefix operators nests without brackets.
		switch {
		case strings.IndexByte("!~+-", c) >= 0:
			prefixes++
		case strings.IndexByte(" \t\r\n", c) < 0:
			prefixes = 0
		}
		if depth > maxDepth || prefixes > maxDepth {
			return errf(abi.Limit, "source at %s: nested deeper than %d", locate(src, i), maxDepth)
		}
	}
	return nil
}

// mentions lists every "$name" in the text, wherever it stands.
func mentions(src string) []string {
	var names []string
	seen := map[string]bool{}
	for i := 0; i < len(src); {
		if !wordByte(src[i]) {
			i++
			continue
		}
		start := i
		for i < len(src) && wordByte(src[i]) {
			i++
		}
		word := src[start:i]
		if word[0] == '$' && isName(word[1:]) && !seen[word] {
			seen[word] = true
			names = append(names, word[1:])
		}
	}
	return names
}
