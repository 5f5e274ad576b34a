package output

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
)

// A Printer writes to standard output or standard error. It accepts [termtext.Text]
// only, so that text from elsewhere is escaped before it is printed.
type Printer struct{ Writer io.Writer }

// Write writes text.
func (p Printer) Write(text termtext.Text) error {
	_, err := io.WriteString(p.Writer, string(text))
	return err
}

// Printf formats and writes; it escapes arguments that are not Text.
func (p Printer) Printf(format string, args ...any) error {
	return p.Write(termtext.Sprintf(format, args...))
}

// JSON writes a JSON text, escaped by [termtext.JSON].
func (p Printer) JSON(text []byte) error {
	_, err := p.Writer.Write(termtext.JSON(text))
	return err
}

// Value writes v as JSON with a line feed; indent "" writes one line.
func (p Printer) Value(v any, indent string) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return err
	}
	return p.JSON(b.Bytes())
}

// Stream returns a writer for the output of another program or package: it
// escapes control characters but line feeds and tabs.
func (p Printer) Stream() io.Writer { return termtext.NewWriter(p.Writer) }

// A Page collects text that is printed at once.
type Page struct{ b strings.Builder }

// Add appends text.
func (p *Page) Add(text termtext.Text) { p.b.WriteString(string(text)) }

// Printf formats and adds; it escapes arguments that are not Text.
func (p *Page) Printf(format string, args ...any) { p.Add(termtext.Sprintf(format, args...)) }

// Text returns all of the page.
func (p *Page) Text() termtext.Text { return termtext.Text(p.b.String()) }

// Escape escapes text for a part of one line.
func Escape[S ~string](s S) termtext.Text { return termtext.Line(string(s)) }
