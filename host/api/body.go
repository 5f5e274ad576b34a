package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// readTime bounds how long a body may take to arrive.
const readTime = time.Minute

// timedBody is a body that has to arrive in time, read or not: the server reads
// the rest of one that a refused request left, and without a bound a caller who
// sends nothing would hold the connection for ever.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
}

// timed gives a request's body its deadline. A request without one needs none.
func (a *API) timed(w http.ResponseWriter, r *http.Request) {
	if r.Body == nil || r.Body == http.NoBody {
		return
	}
	control := http.NewResponseController(w)
	if control.SetReadDeadline(time.Now().Add(a.readTime)) == nil { // not every connection has deadlines
		r.Body = &timedBody{r.Body, control}
	}
}

// Read lifts the deadline when the body has arrived: else the server, which
// listens on to learn whether the caller goes away, would take the deadline for
// just that and cancel a command that takes longer.
func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// readBody reads a body within the limit of its route. The caller calls release
// when it no longer holds the bytes.
func (a *API) readBody(r *http.Request, route *Route) (body []byte, release func(), err error) {
	limit, bodies := route.limit(), &a.bodies
	if route.Access == AccessHook {
		bodies = &a.hookBodies
	}
	room := r.ContentLength
	if room < 0 {
		room = limit // chunked: it may become this large
	}
	release, err = bodies.take(room)
	if err != nil {
		return nil, nil, err
	}
	body, err = io.ReadAll(r.Body)
	if err != nil {
		release()
		if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
			return nil, nil, tooLarge(limit)
		}
		return nil, nil, &abi.Error{Code: abi.BadFields, Message: fmt.Sprintf("read body: %v", err)}
	}
	return body, release, nil
}

// readJSON is readBody for a JSON value; an empty body is nil.
func (a *API) readJSON(r *http.Request, route *Route) (json.RawMessage, func(), error) {
	body, release, err := a.readBody(r, route)
	if err != nil {
		return nil, nil, err
	}
	body = bytes.TrimSpace(body)
	if len(body) > 0 && !json.Valid(body) {
		release()
		return nil, nil, &abi.Error{Code: abi.BadFields, Permanent: true, Message: "the body is no JSON"}
	}
	return body, release, nil
}

// members decodes an object; nil is an empty one.
func members(body json.RawMessage) (map[string]json.RawMessage, error) {
	if len(body) == 0 {
		return map[string]json.RawMessage{}, nil
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(body, &m); err != nil || m == nil {
		return nil, &abi.Error{Code: abi.BadFields, Permanent: true, Message: "the body is no JSON object"}
	}
	return m, nil
}
