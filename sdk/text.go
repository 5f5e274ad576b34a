package sdk

// Cut returns the first n bytes of s or fewer, never half a character.
func Cut(s string, n int) string {
	if n >= len(s) {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 { // a continuation byte
		n--
	}
	return s[:max(n, 0)]
}

// Quote returns s in quotes for a message, escaped as JSON has it. It saves a
// guest the tables of strconv.Quote.
func Quote(s string) string { return string(appendString(nil, s)) }
