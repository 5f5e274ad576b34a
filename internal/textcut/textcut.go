// Package textcut bounds texts of models, plugins, files and servers before they are
// stored or become part of a message.
package textcut

import "unicode/utf8"

// Ellipsis is the sign of a text that was cut.
const Ellipsis = "..."

// Cut returns s, or as many of its first characters as have at most n bytes. A negative n
// counts as 0. A reader does not see that something is missing: callers set a field that says
// so, or no reader sees the text. Others use [Mark] or [MarkStart].
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

// Mark is [Cut] with [Ellipsis] at the end of what was cut, which counts toward the n bytes.
func Mark(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return Cut(s, n-len(Ellipsis)) + Ellipsis
}

// MarkStart returns s, or [Ellipsis] and as many of its last characters as have at most n bytes
// together with it.
func MarkStart(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return Ellipsis + CutStart(s, n-len(Ellipsis))
}

// CutStart returns s, or as many of its last characters as have at most n bytes, see [Cut].
func CutStart(s string, n int) string {
	if len(s) <= max(n, 0) {
		return s
	}
	from := len(s) - max(n, 0)
	for from < len(s) && !utf8.RuneStart(s[from]) {
		from++
	}
	return s[from:]
}
