package code

// jsonSize returns the size of the strings in JSON in bytes, without quotes.
func jsonSize(parts ...string) int {
	n := 0
	for _, s := range parts {
		n += len(s)
		for i := range len(s) {
			switch c := s[i]; {
			case c == '"' || c == '\\' || c == '\n' || c == '\r' || c == '\t':
				n++
			case c < 0x20 || c == 0x7f || c == '<' || c == '>' || c == '&':
				n += 5 // \u00XX
			}
		}
	}
	return n
}
