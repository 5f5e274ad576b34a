package egress

import (
	"bufio"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
)

const (
	maxRatio  = 100      // of decompressed to compressed
	ratioFrom = 64 << 10 // decompressed bytes below which the ratio says nothing
	rawSlack  = 64 << 10 // compressed bytes beyond the body's own limit
)

var (
	errRatio = errors.New("the answer is compressed more than 100 to 1")
	errRaw   = errors.New("the compressed answer is longer than what is in it may be")
)

// read reads a response's body as far as it may go; cut says that there was
// more. A gzip body is unpacked and no longer declared as one; other codings
// stay as they are.
func read(response *http.Response, most int) (b []byte, cut bool, err error) {
	var from io.Reader = response.Body
	coding := strings.ToLower(strings.TrimSpace(strings.Join(response.Header.Values("Content-Encoding"), ",")))
	if (coding == "gzip" || coding == "x-gzip") && response.Request.Method != http.MethodHead && response.ContentLength != 0 {
		if from, err = unpack(response.Body, most); errors.Is(err, io.EOF) {
			return nil, false, nil // an empty body, whatever was declared
		} else if err != nil {
			return nil, false, err
		}
		response.Header.Del("Content-Encoding")
		response.Header.Del("Content-Length")
	}
	// One byte more than may be kept tells whether there was more.
	b, err = io.ReadAll(io.LimitReader(from, int64(most)+1))
	if err != nil {
		return nil, false, err
	}
	if len(b) > most {
		return b[:most], true, nil
	}
	return b, false, nil
}

// unpack returns a reader of what is compressed in body.
func unpack(body io.Reader, most int) (io.Reader, error) {
	raw := &counted{from: bufio.NewReader(body), most: int64(most) + rawSlack}
	z, err := gzip.NewReader(raw)
	if err != nil {
		return nil, err
	}
	return &ratioed{from: z, raw: raw}, nil
}

// counted counts the compressed bytes that were used. It has ReadByte so that
// package flate reads no further ahead than it needs: a buffer of a few
// kilobytes would hide a bomb of a few hundred bytes.
type counted struct {
	from *bufio.Reader
	n    int64
	most int64 // members without content would otherwise go on for ever
}

// Read implements io.Reader.
func (c *counted) Read(p []byte) (int, error) {
	if c.n >= c.most {
		return 0, errRaw
	}
	n, err := c.from.Read(p)
	c.n += int64(n)
	return n, err
}

// ReadByte implements io.ByteReader.
func (c *counted) ReadByte() (byte, error) {
	if c.n >= c.most {
		return 0, errRaw
	}
	b, err := c.from.ReadByte()
	if err == nil {
		c.n++
	}
	return b, err
}

// ratioed ends with errRatio when too much came out of too little.
type ratioed struct {
	from io.Reader
	raw  *counted
	n    int64
}

// Read implements io.Reader. Bytes that came with the refusal are withheld.
func (r *ratioed) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	r.n += int64(n)
	if r.n > ratioFrom && r.n > maxRatio*r.raw.n {
		return 0, errRatio
	}
	return n, err
}
