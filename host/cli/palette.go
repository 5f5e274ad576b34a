package cli

import "github.com/sentinel-runtime/sentinel/host/internal/termtext"

// A palette colours text, or leaves it when it is false.
type palette bool

// sgr wraps text in one attribute. Only the sixteen basic ones are used: they follow
// what people set up for their terminal.
func (p palette) sgr(code, text termtext.Text) termtext.Text {
	if !p || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (p palette) good(text termtext.Text) termtext.Text   { return p.sgr("32", text) }
func (p palette) bad(text termtext.Text) termtext.Text    { return p.sgr("31", text) }
func (p palette) warn(text termtext.Text) termtext.Text   { return p.sgr("33", text) }
func (p palette) dim(text termtext.Text) termtext.Text    { return p.sgr("2", text) }
func (p palette) strong(text termtext.Text) termtext.Text { return p.sgr("1", text) }
