package cli

// A palette colours text, or leaves it when it is false.
type palette bool

// sgr wraps text in one attribute. Only the sixteen basic ones are used: they follow
// what people set up for their terminal.
func (p palette) sgr(code, s string) string {
	if !p || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p palette) good(s string) string   { return p.sgr("32", s) }
func (p palette) bad(s string) string    { return p.sgr("31", s) }
func (p palette) warn(s string) string   { return p.sgr("33", s) }
func (p palette) dim(s string) string    { return p.sgr("2", s) }
func (p palette) strong(s string) string { return p.sgr("1", s) }
