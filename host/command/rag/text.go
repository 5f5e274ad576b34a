package rag

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// cutMark ends a text that was cut.
const cutMark = "[cut off]\n"

// clean makes a text safe for a prompt and a terminal: valid UTF-8, without control
// characters other than line feed and tab.
func clean(s string) string {
	if isClean(s) {
		return s
	}
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, s)
}

// isClean reports whether clean would return a text of ASCII as it is, as it does most
// files.
func isClean(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\n' && c != '\t' || c >= 0x7f {
			return false
		}
	}
	return true
}

// shorten cuts a text to n bytes, at the end of a line if possible, and marks the
// cut. The result is empty if n is too small for the mark.
func shorten(s string, n int) (string, bool) {
	if len(s) <= n {
		return s, false
	}
	n -= len(cutMark)
	if n < 0 {
		return "", true
	}
	s = s[:n]
	if i := strings.LastIndexByte(s, '\n'); i >= 0 {
		return s[:i+1] + cutMark, true
	}
	return cutMark, true
}

// newest joins the last lines that fit into n bytes.
func newest(lines []string, n int) (string, bool) {
	size := 0
	for i := len(lines) - 1; i >= 0; i-- {
		if size += len(lines[i]); size > n {
			return strings.Join(lines[i+1:], ""), true
		}
	}
	return strings.Join(lines, ""), false
}

// isBinary reports whether the first 8 KiB contain a zero byte or are not UTF-8.
func isBinary(data []byte) bool {
	head := data[:min(len(data), 8<<10)]
	if bytes.IndexByte(head, 0) >= 0 {
		return true
	}
	if len(head) < len(data) {
		for i := 0; i < utf8.UTFMax && len(head) > 0 && !utf8.RuneStart(data[len(head)]); i++ {
			head = data[:len(head)-1]
		}
	}
	return !utf8.Valid(head)
}
