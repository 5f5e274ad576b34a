package strictjson

import "bytes"

// A LargePart is a large value within a JSON text.
type LargePart struct {
	From, To int    // in the text, in bytes
	Depth    int    // number of the arrays and objects around it
	Field    string // key of the member of the whole object that it is in, as written between its quotes
}

// LargeLimits say which values are large parts.
type LargeLimits struct {
	Bytes   int // size from which a value is large
	Members int // an array or object with more members is one part
	Inline  int // and so is one with more than so many bytes outside of its own large values
	Depth   int // an array or object with more of them within each other is not a part
}

// LargeParts returns the large values in a valid JSON text: in order, none within another, and
// not the whole text. Of an array or object with few members, the large members are parts. It
// builds nothing and decodes no string, so that it takes a fraction of the time of a decoder.
func LargeParts(text []byte, limits LargeLimits) (parts []LargePart) {
	type container struct {
		from, parts, members, height int
		key                          bool // the next string is a key
	}
	var open []container
	field := ""
	for i := 0; i < len(text); i++ {
		n := len(open)
		switch c := text[i]; {
		case n == 0 && c != '{' && c != '[':
			return nil // no value has others in it, or the text is not JSON
		case c == '"':
			from := i
			i = endOfString(text, i)
			switch {
			case n == 1 && open[0].key:
				field = string(text[from+1 : i])
			case n > 0 && !open[n-1].key && i-from >= limits.Bytes:
				parts = append(parts, LargePart{from, i + 1, n, field})
			}
		case c == '{' || c == '[':
			open = append(open, container{from: i, parts: len(parts), key: c == '{'})
		case c == ':':
			open[n-1].key = false
		case c == ',':
			open[n-1].members++
			open[n-1].key = text[open[n-1].from] == '{'
		case c == '}' || c == ']':
			closed := open[n-1]
			open = open[:n-1]
			if n == 1 {
				break
			}
			open[n-2].height = max(open[n-2].height, closed.height+1)
			size := i + 1 - closed.from
			inline := size
			for _, p := range parts[closed.parts:] {
				inline -= p.To - p.From
			}
			if size >= limits.Bytes && closed.height < limits.Depth && (closed.members >= limits.Members || inline > limits.Inline) {
				parts = append(parts[:closed.parts], LargePart{closed.from, i + 1, n - 1, field})
			}
		}
	}
	return parts
}

// endOfString returns the offset of the quote that ends the string at text[i], or of the last
// byte. It looks for quotes only, which is faster in long texts than to read each byte.
func endOfString(text []byte, i int) int {
	for from := i + 1; ; {
		n := bytes.IndexByte(text[from:], '"')
		if n < 0 {
			return len(text) - 1
		}
		at, escapes := from+n, 0
		for text[at-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return at
		}
		from = at + 1
	}
}

// SkipString returns the offset after the string at text[i] of a valid JSON text.
func SkipString(text []byte, i int) int { return endOfString(text, i) + 1 }
