package retention

import "encoding/hex"

// A digest is the SHA-256 of a blob.
type digest [32]byte

func (d digest) String() string { return hex.EncodeToString(d[:]) }

func parseDigest(text string) (d digest, ok bool) {
	if len(text) != 2*len(d) {
		return d, false
	}
	_, err := hex.Decode(d[:], []byte(text))
	return d, err == nil
}

// eachDigest calls fn for every place in text that may be a digest: 64 lowercase
// hexadecimal digits in a row, also within longer rows.
func eachDigest(text []byte, fn func(digest)) {
	const digits = 64
	for i := 0; i+digits <= len(text); {
		// From the end: most text has no such row, and is skipped quickly.
		j := i + digits - 1
		for j >= i && isHex(text[j]) {
			j--
		}
		if j >= i {
			i = j + 1
			continue
		}
		var d digest
		if _, err := hex.Decode(d[:], text[i:i+digits]); err == nil {
			fn(d)
		}
		i++
	}
}

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' }
