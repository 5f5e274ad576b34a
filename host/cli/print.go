package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
)

// A printer writes to standard output or standard error. Verbs reach the two
// streams through printers alone, which take [termtext.Text]: foreign text has
// to be escaped before it can be printed.
type printer struct{ to io.Writer }

func (p printer) write(text termtext.Text) error {
	_, err := io.WriteString(p.to, string(text))
	return err
}

// printf formats and writes; it escapes arguments that are not Text.
func (p printer) printf(format string, args ...any) error {
	return p.write(termtext.Sprintf(format, args...))
}

// json writes a JSON text spelled as [termtext.JSON] does.
func (p printer) json(text []byte) error {
	_, err := p.to.Write(termtext.JSON(text))
	return err
}

// value writes v as JSON with a line feed; indent "" writes one line.
func (p printer) value(v any, indent string) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return err
	}
	return p.json(b.Bytes())
}

// stream returns a writer for the output of another program or package: it
// escapes control characters but line feeds and tabs.
func (p printer) stream() io.Writer { return termtext.NewWriter(p.to) }

// A page collects text that is printed as one.
type page struct{ b strings.Builder }

func (p *page) add(text termtext.Text) { p.b.WriteString(string(text)) }

// printf formats and adds; it escapes arguments that are not Text.
func (p *page) printf(format string, args ...any) { p.add(termtext.Sprintf(format, args...)) }

func (p *page) text() termtext.Text { return termtext.Text(p.b.String()) }

// escaped is foreign text as a part of one line.
func escaped[S ~string](s S) termtext.Text { return termtext.Line(string(s)) }
