package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// maxList bounds a list of models, maxFault the body of an error, in bytes.
const (
	maxList  = 16 << 20
	maxFault = 64 << 10
)

// A Server is the HTTP side of a provider.
//
// # Concurrency
//
// Safe for concurrent use.
type Server struct {
	Base   string       // URL before the paths, without a slash at its end
	Query  string       // behind the paths, such as a version that Azure wants; "" for none
	Header http.Header  // sent with every request
	HTTP   *http.Client // must not follow redirects: Go would keep some keys across hosts
	// Fault reads the body of a response with a status of 400 or more into f, which has
	// the status and the header.
	Fault func(f *Failure, body []byte)
}

// SplitBase returns the two parts of a base URL, behind the first of which paths go.
func SplitBase(address string) (base, query string) {
	base, query, _ = strings.Cut(address, "?")
	return strings.TrimRight(base, "/"), query
}

// Post sends a request as JSON and returns the response, whose body is a stream of
// events that the caller closes. whole is the body instead if the server answered
// with one JSON object, see [TakeWhole]. The error is a *Failure.
func (s *Server) Post(ctx context.Context, path string, request any, alive func()) (response *http.Response, whole []byte, err error) {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false) // the server reads JSON, not HTML
	if err := encoder.Encode(request); err != nil {
		return nil, nil, &Failure{Kind: Transport, Err: err}
	}
	response, err = s.send(ctx, http.MethodPost, path, &body)
	if err != nil {
		return nil, nil, err
	}
	if whole, err = TakeWhole(response, alive); err != nil || whole != nil {
		_ = response.Body.Close()
	}
	return response, whole, err
}

// Get reads the JSON answer to a request without a body into v. The error is a
// *Failure.
func (s *Server) Get(ctx context.Context, path string, v any) error {
	response, err := s.send(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxList+1))
	switch {
	case err != nil:
		return &Failure{Kind: Broken, Err: err}
	case len(body) > maxList:
		return &Failure{Kind: TooLarge}
	}
	if err := strictjson.DecodeForeign(body, v); err != nil {
		return Foreign(response.Header.Get("Content-Type"))
	}
	return nil
}

// send makes a request. A status of 300 or more is a *Failure.
func (s *Server) send(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	address := s.Base + path
	if s.Query != "" {
		address += "?" + s.Query
	}
	request, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return nil, &Failure{Kind: Transport, Err: err}
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "sentinel")
	if body != nil {
		request.Header.Set("Accept", "text/event-stream, application/json")
		request.Header.Set("Content-Type", "application/json")
	}
	for name, values := range s.Header {
		request.Header[name] = values
	}
	response, err := s.HTTP.Do(request)
	if err != nil {
		return nil, &Failure{Kind: Transport, Err: err}
	}
	if response.StatusCode < 300 {
		return response, nil
	}
	defer func() { _ = response.Body.Close() }()
	f := &Failure{Kind: Status, Status: response.StatusCode, Header: response.Header}
	if response.StatusCode < 400 {
		f.Message = "the server redirects to " + response.Header.Get("Location")
		return nil, f
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxFault))
	if err == nil && utf8.Valid(text) {
		s.Fault(f, text)
	}
	return nil, f
}

// Clip bounds the text of an error; a gateway may answer with a whole page.
func Clip(text string) string {
	const most = 500
	return textcut.Mark(strings.TrimSpace(text), most)
}

// Early is the cause of a stream that ended without an error and without its last
// event.
func Early(response *http.Response) error {
	if kind := response.Header.Get("Content-Type"); kind != "" && !strings.HasPrefix(kind, "text/event-stream") {
		return fmt.Errorf("the server answered with %q where a stream of events was asked for", kind)
	}
	return fmt.Errorf("the stream ended before the answer was complete: %w", io.ErrUnexpectedEOF)
}
