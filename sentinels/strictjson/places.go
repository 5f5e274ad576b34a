package strictjson

import (
	"slices"
	"strconv"
	"strings"
)

// places is an index of the lines and characters of a text. It is built once, because
// there may be thousands of problems in one line.
type places struct {
	text  []byte
	lines []int // offset of the first byte of each line
	runes []int // number of characters before each block
}

const blockBytes = 1 << 10

func newPlaces(text []byte) *places {
	p := &places{text: text, lines: []int{0}}
	count := 0
	for i, c := range text {
		if i%blockBytes == 0 {
			p.runes = append(p.runes, count)
		}
		if c&0xc0 != 0x80 { // the first byte of a character
			count++
		}
		if c == '\n' {
			p.lines = append(p.lines, i+1)
		}
	}
	return p
}

// of returns the line and the column, in characters, of an offset.
func (p *places) of(offset int) (line, column int) {
	offset = min(offset, len(p.text))
	line, found := slices.BinarySearch(p.lines, offset)
	if found {
		return line + 1, 1
	}
	return line, p.characters(offset) - p.characters(p.lines[line-1]) + 1
}

// characters returns the number of characters before an offset.
func (p *places) characters(offset int) int {
	if len(p.runes) == 0 {
		return 0
	}
	block := min(offset/blockBytes, len(p.runes)-1)
	count := p.runes[block]
	for _, c := range p.text[block*blockBytes : offset] {
		if c&0xc0 != 0x80 {
			count++
		}
	}
	return count
}

// cutPath splits the first key or index from a path as [Join] writes it; index is -1
// for a key.
func cutPath(path string) (key string, index int, rest string) {
	if inner, ok := strings.CutPrefix(path, "["); ok {
		if quoted, err := strconv.QuotedPrefix(inner); err == nil {
			key, _ = strconv.Unquote(quoted)
			return key, -1, strings.TrimPrefix(inner[len(quoted):], "]")
		}
		digits, rest, _ := strings.Cut(inner, "]")
		if i, err := strconv.Atoi(digits); err == nil && i >= 0 {
			return "", i, rest
		}
		return digits, -1, rest
	}
	path = strings.TrimPrefix(path, ".")
	end := strings.IndexAny(path, ".[")
	if end < 0 {
		end = len(path)
	}
	return path[:end], -1, path[end:]
}
