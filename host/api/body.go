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

// readBody reads a body within the limit of its route. The caller calls release
// when it no longer holds the bytes.
func (a *API) readBody(w http.ResponseWriter, r *http.Request, route *Route) (body []byte, release func(), err error) {
	limit := route.limit()
	room := r.ContentLength
	if room < 0 {
		room = limit // chunked: it may become this large
	}
	release, err = a.bodies.take(room)
	if err != nil {
		return nil, nil, err
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(readTime)) // not every connection has deadlines
	body, err = io.ReadAll(r.Body)
	if err != nil {
		release()
		if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
			return nil, nil, tooLarge(limit)
		}
		return nil, nil, &abi.Error{Code: abi.BadFields, Message: fmt.Sprintf("read body: %v", err)}
	}
	// Else the server would take its end for the caller's going away.
	_ = control.SetReadDeadline(time.Time{})
	return body, release, nil
}

// readJSON is readBody for a JSON value; an empty body is nil.
func (a *API) readJSON(w http.ResponseWriter, r *http.Request, route *Route) (json.RawMessage, func(), error) {
	body, release, err := a.readBody(w, r, route)
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
