package webhook

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// maxCodings limits the content codings of one body.
const maxCodings = 2

// decodeContent returns the body of a request without its content codings, gzip and
// deflate. The result is bounded as a body is, whatever it is compressed from, and takes what it
// decompresses from the budget of the body as it grows.
func decodeContent(r triggers.Request) ([]byte, error) {
	text, err := header(r, "Content-Encoding")
	if err != nil || text == "" {
		return r.Body, err
	}
	codings := strings.Split(strings.ToLower(text), ",")
	if len(codings) > maxCodings {
		return nil, badRequest("%d content encodings, at most %d", len(codings), maxCodings)
	}
	body := r.Body
	for i := len(codings) - 1; i >= 0; i-- { // the last one was applied last
		if body, err = decodeCoding(body, strings.TrimSpace(codings[i]), r.Charge); err != nil {
			return nil, err
		}
	}
	return body, nil
}

func decodeCoding(body []byte, coding string, charge func(int) error) ([]byte, error) {
	src := bytes.NewReader(body)
	var in io.Reader
	var err error
	switch coding {
	case "identity", "":
		return body, nil
	case "gzip", "x-gzip":
		in, err = gzip.NewReader(src)
	case "deflate":
		// The name means the zlib format; some clients send the data without it.
		if isZlib(body) {
			in, err = zlib.NewReader(src)
		} else {
			in = flate.NewReader(src)
		}
	default:
		return nil, badRequest("unsupported content encoding %.20q: want gzip, deflate or none", coding)
	}
	var out []byte
	if err == nil {
		charged := &chargedReader{in: io.LimitReader(in, triggers.MaxBody+1), charge: charge}
		out, err = io.ReadAll(charged)
		if charged.refusal != nil {
			return nil, charged.refusal
		}
	}
	switch {
	case len(out) > triggers.MaxBody:
		return nil, abi.New(abi.Limit, fmt.Sprintf("body has more than %d bytes without its content encoding %s", triggers.MaxBody, coding))
	case err != nil, src.Len() > 0:
		return nil, badRequest("the body is not %s, which its content encoding says", coding)
	}
	return out, nil
}

// A chargedReader takes what is read from a budget.
type chargedReader struct {
	in      io.Reader
	charge  func(int) error // nil for no budget
	refusal error
}

func (c *chargedReader) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	if c.charge != nil && n > 0 {
		if c.refusal = c.charge(n); c.refusal != nil {
			return 0, c.refusal
		}
	}
	return n, err
}

// isZlib reports whether a text begins with the header of the zlib format.
func isZlib(b []byte) bool {
	return len(b) >= 2 && b[0]&0x0f == 8 && (int(b[0])<<8|int(b[1]))%31 == 0
}
