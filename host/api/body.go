package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/httpproblem"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// readTime bounds how long a body may take to arrive.
const readTime = time.Minute

// timedBody is a body with a deadline, which also counts when the handler
// does not read it: the server reads the rest of the body of a refused request,
// and without a deadline a client that sends nothing would keep the connection
// open for ever.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
}

// timed sets the deadline of a request's body, if it has a body.
func (a *API) timed(w http.ResponseWriter, r *http.Request) {
	if r.Body == nil || r.Body == http.NoBody {
		return
	}
	control := http.NewResponseController(w)
	if control.SetReadDeadline(time.Now().Add(a.readTime)) == nil { // not every connection has deadlines
		r.Body = &timedBody{r.Body, control}
	}
}

// stop ends a read under way, and with it the connection: the rest of the body would be read as the
// next request.
func (b *timedBody) stop() { _ = b.control.SetReadDeadline(time.Unix(1, 0)) }

// Read removes the deadline when the body has arrived. The server keeps reading
// to notice when the client disconnects, and would take a later timeout for
// that and cancel the command.
func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// readBody reads a body within the limit of its route. The caller calls release
// when it no longer refers to the bytes.
func (a *API) readBody(r *http.Request, route *Route) (text []byte, release func(), err error) {
	text, _, release, err = a.readCharged(r, route)
	return text, release, err
}

// readCharged is readBody with a function that counts n more bytes as those of the body: what is
// made of it. They are counted until release.
func (a *API) readCharged(r *http.Request, route *Route) (text []byte, charge func(n int) error, release func(), err error) {
	if r.ContentLength == 0 {
		return nil, nil, func() {}, nil
	}
	budget, stop := a.bodies, func() {}
	if route.Access == AccessHook {
		budget = a.hookBodies
	}
	if timed, ok := r.Body.(*timedBody); ok {
		stop = timed.stop
	}
	b := budget.open(ownerOf(r, route), stop)
	text, err = b.readOf(r)
	if err == nil {
		return text, func(n int) error { return b.charge(int64(n), true) }, b.release, nil
	}
	b.release()
	large := (*http.MaxBytesError)(nil)
	switch {
	case errors.As(err, &large):
		return nil, nil, nil, tooLarge(route.limit())
	case abi.As(err) != nil:
		return nil, nil, nil, err
	}
	return nil, nil, nil, &abi.Error{Code: abi.BadFields, Message: fmt.Sprintf("read body: %v", err)}
}

// readOf reads the body of a request in the place or turn of its sender, but for the wait for the client, who may take
// its time. Without an error the request holds the place then.
func (b *body) readOf(r *http.Request) ([]byte, error) {
	c := connOf(r.Context())
	defer c.yield()()
	at := placeOfBody(r)
	defer at.end(c)
	if at == nil {
		placeOf(r.Context()).giveBack()
	}
	if err := at.arrived(); err != nil { // with the headers
		return nil, err
	}
	text, err := b.read(r.Body, r.ContentLength)
	if err != nil {
		at.wait()
	}
	return text, err
}

// readJSON is readBody for a JSON value; it returns nil for an empty body.
func (a *API) readJSON(r *http.Request, route *Route) (json.RawMessage, func(), error) {
	body, release, err := a.readBody(r, route)
	if err != nil {
		return nil, nil, err
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, release, nil
	}
	if err := placeOf(r.Context()).take(r.Context()); err != nil {
		release()
		return nil, nil, err
	}
	if err := strictjson.Check(body, route.jsonLimits()); err != nil {
		release()
		return nil, nil, httpproblem.BadJSON("body", err)
	}
	return body, release, nil
}

// wrapping is the extra depth of parameters around a definition, which may have
// the full depth itself.
const wrapping = 8

// jsonLimits returns the limits of a JSON body. Definitions are limited again
// when they are decoded.
func (r *Route) jsonLimits() strictjson.Limits {
	limits := strictjson.Limits{Bytes: int(r.limit())}
	if r.body == "*" {
		limits.Depth, limits.Keys, limits.StringBytes = strictjson.DefaultDepth+wrapping, 100_000, limits.Bytes
	}
	return limits
}

// locate adds the position in the body to an error about a field. body is the
// source of the route's parameters.
func (r *Route) place(body json.RawMessage, err error) error {
	bad := abi.As(err)
	if bad == nil || bad.Code != abi.BadFields || bad.Field == "" || bad.Field == keyHeader || len(body) == 0 {
		return err
	}
	if own := (*httpproblem.Error)(nil); errors.As(err, &own) {
		return err // it has a position already, or is about something else
	}
	path := bad.Field
	if r.body != "*" {
		rest, inside := strings.CutPrefix(path, r.body)
		if !inside {
			return err
		}
		path = strings.TrimPrefix(rest, ".")
	}
	_, line, column := strictjson.Find(body, path)
	return &httpproblem.Error{Line: line, Column: column, Path: path, Err: err}
}

// members decodes an object that was checked; an empty text is an empty object.
func members(text json.RawMessage) (map[string]json.RawMessage, error) {
	if len(text) == 0 {
		return map[string]json.RawMessage{}, nil
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(text, &m); err != nil || m == nil {
		return nil, errNoObject
	}
	return m, nil
}

var errNoObject = &httpproblem.Error{Line: 1, Column: 1, Err: &abi.Error{Code: abi.BadFields, Permanent: true, Message: "body: line 1, column 1: want a JSON object"}}
