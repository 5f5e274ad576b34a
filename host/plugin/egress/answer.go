package egress

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/host/plugin/hostcall"
)

// result is the answer of clause A6.13. Encoding is "base64" where the body is
// not text, else absent.
type result struct {
	Status    int             `json:"status"`
	Headers   json.RawMessage `json:"headers"`
	Body      string          `json:"body"`
	Encoding  string          `json:"encoding,omitempty"`
	Truncated bool            `json:"truncated"`
}

const (
	maxHeaderText = 96 << 10 // of the headers as JSON: the rest is for the body
	frame         = 256      // everything in an answer that is neither headers nor body
)

var errHeaders = errors.New("the answer's headers are too long")

// answer writes a response as a text of at most maxAnswer bytes, without the
// secrets that the server may have repeated. cut says that body is not all
// there was.
func (c *Client) answer(response *http.Response, body []byte, cut bool) (json.RawMessage, error) {
	headers, err := hostcall.Answer(c.headerTexts(response.Header))
	if err != nil {
		return nil, err
	}
	if len(headers) > maxHeaderText {
		return nil, errHeaders
	}
	r := result{Status: response.StatusCode, Headers: headers, Truncated: cut}
	room := maxAnswer - frame - len(headers)
	// Before anything is cut off: half a secret would not be found.
	body = c.opt.Secrets.Hide(body, cut)
	if cut {
		body = wholeRunes(body)
	}
	if utf8.Valid(body) {
		n := fit(body, room)
		r.Body, r.Truncated = string(body[:n]), cut || n < len(body)
	} else {
		n := min(len(body), room/4*3) // four letters for three bytes
		r.Body, r.Truncated = base64.StdEncoding.EncodeToString(body[:n]), cut || n < len(body)
		r.Encoding = "base64"
	}
	return hostcall.Answer(r)
}

// headerTexts joins the values of each name. Bytes that are not UTF-8 are read
// as Latin-1, which is what they then are.
func (c *Client) headerTexts(h http.Header) map[string]string {
	out := make(map[string]string, len(h))
	for name, values := range h {
		between := ", "
		if name == "Set-Cookie" {
			between = "\n" // its values have commas of their own
		}
		value := strings.Join(values, between)
		if !utf8.ValidString(value) {
			runes := make([]rune, len(value))
			for i := range len(value) {
				runes[i] = rune(value[i])
			}
			value = string(runes)
		}
		// In lower case first: net/http has changed the case of what was sent, and the
		// redactor knows secrets in lower case too.
		name = string(c.opt.Secrets.Hide([]byte(strings.ToLower(name)), false))
		out[name] = string(c.opt.Secrets.Hide([]byte(value), false))
	}
	return out
}

// wholeRunes takes away the beginning of a rune at the end, which a cut left.
func wholeRunes(b []byte) []byte {
	for i := 1; i <= min(utf8.UTFMax-1, len(b)); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}

// fit returns how many bytes of a text, in whole runes, take no more than room
// bytes as a JSON string without its quotes.
func fit(b []byte, room int) int {
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if room -= width(r, n); room < 0 {
			return i
		}
		i += n
	}
	return len(b)
}

// width is how many bytes encoding/json writes for a rune of n bytes.
func width(r rune, n int) int {
	switch {
	case strings.ContainsRune("\"\\\b\f\n\r\t", r):
		return 2
	case r < ' ', r == '\u2028', r == '\u2029':
		return 6
	}
	return n
}
