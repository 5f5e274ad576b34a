package webhook

import (
	"errors"
	"io"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/triggers"
)

// headerPrefix is the prefix of the headers with attributes.
const headerPrefix = "Ce-"

// isBinary reports whether a request is an event in binary mode.
func isBinary(r triggers.Request) bool { return len(r.Header[headerPrefix+"Specversion"]) > 0 }

// readBinary reads an event in binary mode: headers are attributes, the body is
// the data.
func readBinary(r triggers.Request, m media) (cloudEvent, error) {
	var e cloudEvent
	seen := map[string]bool{}
	// Header names ignore case, attributes are lower case.
	for name := range r.Header {
		attribute, ok := strings.CutPrefix(name, headerPrefix)
		if !ok {
			continue
		}
		attribute = strings.ToLower(attribute)
		value, err := header(r, name)
		if err != nil {
			return e, err
		}
		if value, err = unescape(value); err != nil {
			return e, badRequest("attribute %.64q cannot be decoded", attribute)
		}
		seen[attribute] = true
		if err := e.attribute(attribute, value); err != nil {
			return e, err
		}
	}
	if err := e.complete(seen); err != nil {
		return e, err
	}
	var err error
	e.data, err = content(r.Body, m)
	return e, err
}

var errEscape = errors.New("bad escape")

// unescape decodes a value as the HTTP binding requires: a quoted string with
// backslashes first, then percent encoding.
func unescape(value string) (string, error) {
	if len(value) > 1 && value[0] == '"' && value[len(value)-1] == '"' {
		var b strings.Builder
		in := strings.NewReader(value[1 : len(value)-1])
		for {
			c, err := in.ReadByte()
			if err == io.EOF {
				break
			}
			if c == '\\' {
				if c, err = in.ReadByte(); err != nil {
					return "", errEscape
				}
			}
			b.WriteByte(c)
		}
		value = b.String()
	}
	out, err := url.PathUnescape(value)
	if err != nil || !utf8.ValidString(out) {
		return "", errEscape
	}
	return out, nil
}
