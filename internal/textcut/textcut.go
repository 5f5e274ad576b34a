// Package textcut bounds texts of models, plugins, files and servers before they are
// stored or become part of a message.
package textcut

import "unicode/utf8"

const mark = "..."

// Cut returns s, or as many of its first characters as have at most n bytes. A negative n
// counts as 0.
func Cut(s string, n int) string {
	n = max(n, 0)
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// Mark is [Cut] with "..." at the end of what was cut, which counts toward the n bytes.
func Mark(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return Cut(s, n-len(mark)) + mark
}
