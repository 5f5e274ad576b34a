package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// maxWhole bounds an answer in one piece: text and arguments of [MaxAnswer] may
// take twice as many bytes as JSON.
const maxWhole = 2*MaxAnswer + 1<<20

// maxValues bounds the JSON values of an answer or an event, since they take hundreds of bytes
// in memory. A reply has hundreds; text and arguments of calls are strings.
const maxValues = 200_000

var wholeLimits = strictjson.Limits{Bytes: maxWhole, Depth: 256, Keys: 1_000_000, StringBytes: maxWhole, Values: maxValues}

// NoteWhole is the note of an answer that came in one piece.
const NoteWhole = "the server answered with the whole reply at once where a stream was asked for"

// IsPage reports whether a response is a page for people: the address is not that
// of a model server.
func IsPage(response *http.Response) bool {
	return response != nil && strings.HasPrefix(response.Header.Get("Content-Type"), "text/html")
}

// TakeWhole returns the body of a response that is a JSON object where a stream of
// events was asked for, as servers answer that do not know the parameter. Of any
// other response it returns nil and leaves the body as it is; some servers label
// streams as JSON. Alive is called as the body arrives. The error is a *Failure.
func TakeWhole(response *http.Response, alive func()) ([]byte, error) {
	if response.StatusCode >= 300 || response.Body == nil || !isJSON(response.Header.Get("Content-Type")) {
		return nil, nil
	}
	body := bufio.NewReader(response.Body)
	response.Body = struct {
		io.Reader
		io.Closer
	}{body, response.Body}
	for {
		first, err := body.Peek(1)
		if err != nil || first[0] != '{' && strings.IndexByte(" \t\r\n", first[0]) < 0 {
			return nil, nil // the next reader gets the same error or byte
		}
		if first[0] == '{' {
			break
		}
		_, _ = body.ReadByte() // it was peeked
	}
	text, err := io.ReadAll(io.LimitReader(&lively{body, alive}, maxWhole+1))
	switch {
	case err != nil:
		return nil, &Failure{Kind: Broken, Err: err}
	case len(text) > maxWhole:
		return nil, &Failure{Kind: TooLarge}
	}
	if err := strictjson.Check(text, wholeLimits); err != nil {
		return nil, &Failure{Kind: Broken, Err: fmt.Errorf("the server answered with %q, which is not valid: %w", response.Header.Get("Content-Type"), err)}
	}
	return bytes.TrimSpace(text), nil
}

// Foreign is the failure of an answer that is no reply of the protocol.
func Foreign(contentType string) *Failure {
	return &Failure{Kind: NotReply, Err: errors.New("the server answered with " + quoted(contentType) + ", which is neither a stream nor a reply")}
}

func quoted(contentType string) string {
	if contentType == "" {
		return "no content type"
	}
	return fmt.Sprintf("%q", contentType)
}

func isJSON(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && (media == "application/json" || strings.HasSuffix(media, "+json"))
}

// lively is a reader that calls alive for all that it reads.
type lively struct {
	io.Reader
	alive func()
}

// Read calls alive if something came.
func (l *lively) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	if n > 0 && l.alive != nil {
		l.alive()
	}
	return n, err
}
