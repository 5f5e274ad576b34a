package strictjson

import "encoding/binary"

// IsCompact reports whether a valid JSON text has no white space between its parts. It reads eight bytes at once: a
// value is checked each time that it is passed on, and in most large ones the strings are too short to be skipped by a
// search for their ends.
func IsCompact(text []byte) bool {
	var state stringState
	quote := 0 // offset of the last word with one
	for i := 0; i < len(text); i += 8 {
		if state == inString && i-quote > longString {
			i = endOfString(text, i-1)
		}
		word := wordAt(text, i)
		quotes, within, after := stringsIn(word, state)
		if spaceBytes(word)&^within != 0 {
			return false
		}
		if state = after; quotes != 0 {
			quote = i
		}
	}
	return true
}

// longString is the length in bytes of the beginning of a string behind which its end is searched for, which is faster
// from there on.
const longString = 64

// stringState says where a word of eight bytes begins: 0 is outside of strings.
type stringState uint64

const (
	inString stringState = 1 << iota // within a string
	inEscape                         // behind a backslash
)

// A mask of a word has the high bit of each byte that it is about. The first byte of the text is the lowest.
const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)

// wordAt returns the bytes from text[i], with digits behind the end of the text.
func wordAt(text []byte, i int) uint64 {
	if i+8 <= len(text) {
		return binary.LittleEndian.Uint64(text[i:])
	}
	padded := [8]byte{'0', '0', '0', '0', '0', '0', '0', '0'}
	copy(padded[:], text[i:])
	return binary.LittleEndian.Uint64(padded[:])
}

// stringsIn returns masks of the quotes that begin or end a string, and of the bytes within strings, with their first
// quotes.
func stringsIn(word uint64, state stringState) (quotes, within uint64, after stringState) {
	quotes = equalBytes(word, '"')
	if slashes := equalBytes(word, '\\'); slashes != 0 || state&inEscape != 0 {
		if state&inEscape != 0 {
			quotes &^= 0x80
			slashes &^= 0x80
		}
		for slashes != 0 {
			slash := slashes & -slashes
			if slash<<8 == 0 {
				after = inEscape
			}
			quotes &^= slash << 8
			slashes &^= slash | slash<<8
		}
	}
	// Each quote changes it for the bytes behind.
	within = quotes ^ quotes<<8
	within ^= within << 16
	within ^= within << 32
	within ^= highBits * uint64(state&inString)
	return quotes, within, after | stringState(within>>63)
}

// equalBytes returns a mask of the bytes that are c.
func equalBytes(word uint64, c byte) uint64 {
	x := word ^ lowBits*uint64(c) // zero where it is
	return ^((x&^highBits + ^uint64(highBits)) | x | ^uint64(highBits))
}

// spaceBytes returns a mask of the white space, and of control characters.
func spaceBytes(word uint64) uint64 {
	const above = 0x7f - ' '
	return ^((word&^highBits + lowBits*above) | word) & highBits
}
