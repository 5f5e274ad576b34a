package sdk

import "github.com/sentinel-runtime/sentinel/sdk/abi"

// Package encoding/base64 would link reflection into a guest.

const base64Letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// bytesOf decodes a string of an answer.
func bytesOf(function, text, encoding string) ([]byte, error) {
	if encoding == "" {
		return []byte(text), nil
	}
	if encoding == "base64" {
		if b, ok := decodeBase64(text); ok {
			return b, nil
		}
	}
	return nil, abi.New(abi.Internal, function+": answer: not "+encoding)
}

// encodeBase64 writes bytes with padding, RFC 4648 section 4.
func encodeBase64(b []byte) string {
	out := make([]byte, 0, (len(b)+2)/3*4)
	for len(b) > 0 {
		var three [3]byte
		n := copy(three[:], b)
		b = b[n:]
		w := uint32(three[0])<<16 | uint32(three[1])<<8 | uint32(three[2])
		for i := range 4 {
			if i > n {
				out = append(out, '=')
			} else {
				out = append(out, base64Letters[w>>(18-6*i)&63])
			}
		}
	}
	return string(out)
}

// decodeBase64 is the inverse of encodeBase64. It accepts no other form.
func decodeBase64(s string) ([]byte, bool) {
	if len(s)%4 != 0 {
		return nil, false
	}
	out := make([]byte, 0, len(s)/4*3)
	for ; len(s) > 0; s = s[4:] {
		n, w := 4, uint32(0)
		if len(s) == 4 {
			for n > 2 && s[n-1] == '=' {
				n--
			}
		}
		for i := range 4 {
			v := uint32(0)
			if i < n {
				letter := letterOf(s[i])
				if letter < 0 {
					return nil, false
				}
				v = uint32(letter)
			}
			w = w<<6 | v
		}
		// In the canonical form the bits after the last byte are zero.
		if w<<(8+8*uint(n-1)) != 0 {
			return nil, false
		}
		out = append(out, byte(w>>16), byte(w>>8), byte(w))[:len(out)+n-1]
	}
	return out, true
}

// letterOf returns the value of a letter, -1 for an invalid one.
func letterOf(c byte) int {
	switch {
	case c >= 'A' && c <= 'Z':
		return int(c - 'A')
	case c >= 'a' && c <= 'z':
		return int(c-'a') + 26
	case c >= '0' && c <= '9':
		return int(c-'0') + 52
	case c == '+':
		return 62
	case c == '/':
		return 63
	}
	return -1
}
