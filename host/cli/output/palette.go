package output

import "github.com/sentinel-runtime/sentinel/host/internal/termtext"

// A Palette colours text if it is true.
type Palette bool

// sgr wraps text in one attribute. Only the sixteen basic ones are used: they follow
// the colours that users set for their terminal.
func (p Palette) sgr(code, text termtext.Text) termtext.Text {
	if !p || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (p Palette) Good(text termtext.Text) termtext.Text   { return p.sgr("32", text) }
func (p Palette) Bad(text termtext.Text) termtext.Text    { return p.sgr("31", text) }
func (p Palette) Warn(text termtext.Text) termtext.Text   { return p.sgr("33", text) }
func (p Palette) Dim(text termtext.Text) termtext.Text    { return p.sgr("2", text) }
func (p Palette) Strong(text termtext.Text) termtext.Text { return p.sgr("1", text) }
