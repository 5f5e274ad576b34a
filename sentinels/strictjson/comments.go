package strictjson

import "bytes"

// ParseWithComments is [Parse] for a text with comments and trailing commas. The text of
// the tree has spaces in their place, and so is standard JSON with the same offsets.
//
// Comments are "// ..." up to the end of the line and "/* ... */". A trailing comma is
// one between a value and a closing bracket.
func ParseWithComments(text []byte, limits Limits) *Tree {
	standard, unended := text, -1
	if len(text) <= limits.withDefaults().Bytes {
		standard, unended = withoutComments(text)
	}
	t := Parse(standard, limits)
	for _, e := range t.Errors {
		if e.Offset == unended {
			e.Reason = "the comment does not end"
		}
	}
	return t
}

// withoutComments replaces comments and trailing commas by spaces. It returns a text
// without them as it is, whether that is JSON or not. unended is the offset of a comment
// that does not end, -1 for none.
func withoutComments(text []byte) (standard []byte, unended int) {
	out := text
	blank := func(from, to int) {
		if len(text) > 0 && &out[0] == &text[0] {
			out = bytes.Clone(text)
		}
		for i := from; i < to; i++ {
			if out[i] != '\n' && out[i] != '\r' {
				out[i] = ' '
			}
		}
	}
	comma, last := -1, byte(0) // offset of the comma read last; the last byte that is neither space nor comment
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case ' ', '\t', '\r', '\n':
			continue
		case '/':
			end := SkipComment(text, i)
			if end == i { // not a comment, or one that does not end
				return out, i
			}
			blank(i, end)
			i = end - 1
			continue
		case '"':
			i = stringEnd(text, i)
		case ',':
			comma = -1
			if last != 0 && bytes.IndexByte([]byte("[{,:"), last) < 0 {
				comma = i
			}
		case ']', '}':
			if last == ',' && comma >= 0 {
				blank(comma, comma+1)
			}
		}
		last = text[min(i, len(text)-1)]
	}
	return out, -1
}

// SkipComment returns the offset after a comment that starts at text[i], without the end
// of its line, or i if no comment does.
func SkipComment(text []byte, i int) int {
	rest := text[i+1:]
	switch {
	case bytes.HasPrefix(rest, []byte("/")):
		if n := bytes.IndexByte(rest, '\n'); n >= 0 {
			return i + 1 + n
		}
		return len(text)
	case bytes.HasPrefix(rest, []byte("*")):
		if n := bytes.Index(rest[1:], []byte("*/")); n >= 0 {
			return i + 2 + n + 2
		}
	}
	return i
}

// stringEnd returns the offset of the quote that ends the string at text[i], or the
// length of the text.
func stringEnd(text []byte, i int) int {
	for i++; i < len(text) && text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i
}
