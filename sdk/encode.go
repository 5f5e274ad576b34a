package sdk

import "unicode/utf8"

// String returns v as JSON without spaces. An absent value is null.
func (v Value) String() string { return string(v.AppendJSON(nil)) }

// encode returns v for the host, with handles as they came.
func (v Value) encode() string { return string(v.append(nil, passed)) }

// An encoding is a form in which values are written.
type encoding uint8

const (
	ordered encoding = iota // with the fields in their order
	sorted                  // canonical
	passed                  // ordered, and handles as they came
)

// Canonical returns v as JSON without spaces and with sorted keys. Values that differ
// only in the order of their fields have the same canonical form.
func (v Value) Canonical() string { return string(v.append(nil, sorted)) }

// AppendJSON appends v to dst, with the fields in their order.
func (v Value) AppendJSON(dst []byte) []byte { return v.append(dst, ordered) }

func (v Value) append(dst []byte, as encoding) []byte {
	if as == passed && v.n != nil && v.n.handle {
		return append(dst, v.n.text...)
	}
	n := v.node()
	switch n.kind {
	case KindBool, KindNumber:
		return append(dst, n.text...)
	case KindString:
		if n.raw && as != sorted { // what was read is written as it was: two passes less over a long text
			return append(append(append(dst, '"'), n.text...), '"')
		}
		return appendString(dst, n.str())
	case KindList:
		dst = append(dst, '[')
		for i, item := range n.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = item.append(dst, as)
		}
		return append(dst, ']')
	case KindObject:
		return n.appendObject(dst, as)
	}
	return append(dst, "null"...)
}

func (n *node) appendObject(dst []byte, as encoding) []byte {
	order := make([]int, len(n.keys))
	for i := range order {
		order[i] = i
	}
	if as == sorted {
		sortOrder(order, n.keys)
	}
	dst = append(dst, '{')
	for done, i := range order {
		if done > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, n.keys[i]), ':')
		dst = n.items[i].append(dst, as)
	}
	return append(dst, '}')
}

const hexDigits = "0123456789abcdef"

// appendString appends a JSON string. It copies sequences of plain bytes at once:
// texts of models and shells are long and rarely have escapes.
func appendString(dst []byte, s string) []byte {
	if most := len(s) + len(s)/8 + 64; len(s) > 4<<10 && cap(dst)-len(dst) < most { // else it is copied at each doubling
		dst = append(make([]byte, 0, len(dst)+most), dst...)
	}
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		b := s[i]
		if b >= ' ' && b != '"' && b != '\\' && b < utf8.RuneSelf {
			i++
			continue
		}
		if b >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r != utf8.RuneError || size > 1 {
				i += size
				continue
			}
		}
		dst = append(dst, s[start:i]...)
		switch {
		case b >= utf8.RuneSelf:
			dst = append(dst, "\ufffd"...)
		case b == '"' || b == '\\':
			dst = append(dst, '\\', b)
		case b == '\n':
			dst = append(dst, `\n`...)
		case b == '\r':
			dst = append(dst, `\r`...)
		case b == '\t':
			dst = append(dst, `\t`...)
		default:
			dst = append(dst, `\u00`...)
			dst = append(dst, hexDigits[b>>4], hexDigits[b&15])
		}
		i++
		start = i
	}
	return append(append(dst, s[start:]...), '"')
}

// sortOrder sorts indexes by their keys: a heap sort, because package slices
// adds 17 KB to a guest for each type it sorts.
func sortOrder(order []int, keys []string) {
	sift := func(root, end int) {
		for {
			child := 2*root + 1
			if child >= end {
				return
			}
			if child+1 < end && keys[order[child]] < keys[order[child+1]] {
				child++
			}
			if keys[order[root]] >= keys[order[child]] {
				return
			}
			order[root], order[child] = order[child], order[root]
			root = child
		}
	}
	for root := len(order)/2 - 1; root >= 0; root-- {
		sift(root, len(order))
	}
	for end := len(order) - 1; end > 0; end-- {
		order[0], order[end] = order[end], order[0]
		sift(0, end)
	}
}
