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

// CutStart returns at most the last n bytes of s, without a partial character.
func CutStart(s string, n int) string {
	start := max(len(s)-n, 0)
	for start > 0 && start < len(s) && s[start]&0xC0 == 0x80 {
		start++
	}
	return s[start:]
}

// Quote returns s in quotes for a message, escaped as in JSON. Unlike strconv.Quote it
// adds no tables to a guest.
func Quote(s string) string { return string(appendString(nil, s)) }
