package redact

import (
	"bytes"
	"slices"
)

// maxEscapeDepth is how often a text may have been percent-encoded for a secret
// in it to be found.
const maxEscapeDepth = 2

// find returns where forms occur, merged: overlapping secrets must not leave the
// tail of one behind. Which characters a client percent-encodes differs, so a
// text with percent signs is searched decoded too.
func (t *table) find(data []byte) []span {
	spans := t.exact(data)
	eachDecoded(data, func(text []byte, at []int) {
		for _, s := range t.exact(text) {
			spans = append(spans, span{at[s.from], at[s.to]})
		}
	})
	return merged(spans)
}

// begun returns where the longest end of data begins that is the beginning of a
// form, but not the whole of one; len(data) if there is none.
func (t *table) begun(data []byte) int {
	from := t.begunExactly(data)
	eachDecoded(data, func(text []byte, at []int) {
		if i := t.begunExactly(text); i < len(text) {
			from = min(from, at[i])
		}
	})
	return from
}

// eachDecoded calls visit with data percent-decoded once, twice and so on, while
// that changes it. at[i] is where byte i of the text begins in data; its last
// element is len(data).
func eachDecoded(data []byte, visit func(text []byte, at []int)) {
	text, at := data, []int(nil)
	for range maxEscapeDepth {
		decoded, from := percentDecoded(text)
		if from == nil {
			return
		}
		if at != nil {
			for i := range from {
				from[i] = at[from[i]]
			}
		}
		text, at = decoded, from
		visit(text, at)
	}
}

// percentDecoded decodes percent escapes and notes where each byte came from; at
// is nil if there is none. An escape that a cut left incomplete at the end is
// left out.
func percentDecoded(data []byte) (text []byte, at []int) {
	if !mayBeEscaped(data) {
		return nil, nil
	}
	changed := false
	for i := 0; i < len(data); {
		n, c := 1, data[i]
		if c == '%' {
			if i+2 >= len(data) && allHex(data[i+1:]) {
				changed = true
				break
			}
			if high, low := hexValue(data, i+1), hexValue(data, i+2); high >= 0 && low >= 0 {
				n, c, changed = 3, byte(high<<4|low), true
			}
		}
		text, at = append(text, c), append(at, i)
		i += n
	}
	if !changed {
		return nil, nil
	}
	return text, append(at, len(data))
}

// mayBeEscaped reports whether data has a percent escape, or may have been cut in one.
func mayBeEscaped(data []byte) bool {
	for {
		i := bytes.IndexByte(data, '%')
		if i < 0 {
			return false
		}
		data = data[i+1:]
		if allHex(data[:min(2, len(data))]) {
			return true
		}
	}
}

func allHex(data []byte) bool {
	for i := range data {
		if hexValue(data, i) < 0 {
			return false
		}
	}
	return true
}

// hexValue returns the value of the hexadecimal digit at i, -1 if there is none.
func hexValue(data []byte, i int) int {
	if i >= len(data) {
		return -1
	}
	switch c := data[i]; {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// merged returns spans in order, overlapping ones as one.
func merged(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return a.from - b.from })
	out := spans[:0]
	for _, s := range spans {
		if n := len(out); n > 0 && s.from < out[n-1].to {
			out[n-1].to = max(out[n-1].to, s.to)
			continue
		}
		out = append(out, s)
	}
	return out
}
