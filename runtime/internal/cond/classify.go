package cond

import (
	"strings"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// analyze classifies a source of any length without a parser that could be
// crashed.
func analyze(src string) (*analysis, *abi.Error) {
	if len(src) > maxSource {
		return nil, errf(abi.Limit, "source: %d bytes, more than %d", len(src), maxSource)
	}
	s := &analysis{class: needsChild, reason: "its length", at: fastSource}
	if len(src) <= fastSource {
		if s = analyzeFast(src); s.class == invalid {
			return nil, s.err
		}
	}
	if s.class == needsChild {
		if err := checkNesting(src); err != nil {
			return nil, err
		}
		s.names = scanNames(src)
	}
	return s, nil
}

// checkNesting refuses a source that goja's parser could not survive. It counts
// brackets without telling strings from code, so it is stricter than necessary
// for text with many open brackets.
func checkNesting(src string) *abi.Error {
	if !utf8.ValidString(src) {
		return errAt(src, 0, "not UTF-8")
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
		// A sequence of prefix operators nests without brackets.
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

// scanNames returns every "$name" in the text, also in strings and comments.
func scanNames(src string) []string {
	var names []string
	seen := map[string]bool{}
	for i := 0; i < len(src); {
		if !isWordByte(src[i]) {
			i++
			continue
		}
		start := i
		for i < len(src) && isWordByte(src[i]) {
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
