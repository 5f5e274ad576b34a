package api

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/httpproblem"
	"github.com/sentinel-runtime/sentinel/host/principal"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// writeTimeout bounds how long a client may take to read a response.
const writeTime = time.Minute

// statusWriter records the status of a response. Unwrap keeps hijacking and
// deadlines possible.
type answerWriter struct {
	http.ResponseWriter
	status int // 0 until the header is written
	place  *place
}

// WriteHeader records the first status. The request gives its place back: the client may take its
// time.
func (w *answerWriter) WriteHeader(status int) {
	w.place.giveBack()
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write records status 200 unless another was written.
func (w *answerWriter) Write(b []byte) (int, error) {
	w.place.giveBack()
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap returns the writer of the server, for http.ResponseController.
func (w *answerWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// handler returns the handler of a route, which the mux calls for requests that
// the guard has admitted.
func (a *API) handler(route *Route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := checkPathValues(r, route)
		if err == nil && route.serve != nil && route.Access == AccessToken && len(route.Query) == 0 && route.media == "" {
			err = queryParams(r.URL, route, nil) // all are unknown; other routes read their own
		}
		if err == nil && route.executes() {
			err = placeOf(r.Context()).take(r.Context())
		}
		if err == nil {
			if route.serve != nil {
				err = route.serve(a, w, r)
			} else {
				err = a.forward(w, r, route)
			}
		}
		if err != nil && errors.Is(context.Cause(r.Context()), principal.ErrRevoked) {
			err = errRevoked
		}
		if err != nil {
			a.fail(w, r, err)
		}
	})
}

// fail writes the response of an error; no other function does. The cause of an
// internal error may have details of the host, so it is logged, and the client
// receives its first line and an id by which to find it in the log.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	if method := (*methodError)(nil); errors.As(err, &method) {
		w.Header().Set("Allow", strings.Join(method.allow, ", "))
	}
	// RFC 9110 wants both headers with their statuses.
	p := httpproblem.Of(err)
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="sentinel"`)
	}
	if p.Code == abi.Internal {
		id := occurrence()
		a.log.Error("request failed", "id", id, "method", r.Method, "path", r.URL.Path, "error", err)
		first, _, _ := strings.Cut(err.Error(), "\n")
		err = &httpproblem.Error{Status: p.Status, Instance: id, Err: &abi.Error{
			Code: abi.Internal, Message: first, Field: p.Field, Hint: p.Hint, RetryAfterMs: p.RetryAfterMs, Permanent: p.Permanent,
		}}
	}
	patience(w)
	httpproblem.Write(w, err)
}

// panicked responds with an internal error after a handler panicked, if nothing
// was written yet.
func (a *API) panicked(w *answerWriter, r *http.Request, p any) {
	if p == http.ErrAbortHandler { //nolint:errorlint // net/http compares this value
		panic(p)
	}
	id := occurrence()
	a.log.Error("handler panicked", "id", id, "method", r.Method, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
	if w.status != 0 {
		panic(http.ErrAbortHandler) // a partial response must not look complete
	}
	patience(w)
	httpproblem.Write(w, &httpproblem.Error{Instance: id, Err: abi.New(abi.Internal, "internal error; the log of the host has details under this instance")})
}

// faultID returns an id for one fault, for the client and the log.
func occurrence() string { return "urn:sentinel:fault:" + rand.Text() }

// setWriteDeadline bounds how long writing the response may take.
func patience(w http.ResponseWriter) {
	// Not every writer has deadlines.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime))
}

// writeJSON writes a response with a JSON value.
func writeJSON(w http.ResponseWriter, status int, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write response: %w", err)
	}
	if status == 0 {
		status = http.StatusOK
	}
	writeText(w, status, append(text, '\n'))
	return nil
}

// writeText writes a response with the text of a JSON value.
func writeText(w http.ResponseWriter, status int, text []byte) {
	w.Header().Set("Content-Type", "application/json")
	patience(w)
	w.WriteHeader(status)
	_, _ = w.Write(text) // an error means that the client disconnected
}

// observe logs a request and calls Options.Observe.
func (a *API) observe(r *http.Request, route *Route, w *answerWriter, began time.Time) {
	if a.log.Enabled(r.Context(), slog.LevelDebug) {
		// Without query and headers, which may contain private data.
		a.log.Debug("request", "method", r.Method, "path", r.URL.Path, "status", w.status, "took", time.Since(began))
	}
	if a.opt.Observe == nil {
		return
	}
	o := Observation{Route: "other", Status: w.status, Duration: time.Since(began)}
	if route != nil {
		o.Route = route.String()
	}
	if o.Status == 0 && route != nil {
		o.Status = max(route.Status, http.StatusOK) // it wrote nothing, or hijacked the connection
	}
	a.opt.Observe(o)
}
