package sdk

// Cut returns at most the first n bytes of s, without a partial character.
func Cut(s string, n int) string {
	if n >= len(s) {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 { // a continuation byte
		n--
	}
	return s[:max(n, 0)]
}

// Quote returns s in quotes for a message, escaped as in JSON. Unlike strconv.Quote it
// adds no tables to a guest.
func Quote(s string) string { return string(appendString(nil, s)) }
