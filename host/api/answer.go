package api

import (
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
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// writeTime bounds how long a caller may take to read an answer.
const writeTime = time.Minute

// answerWriter notes what was answered. Unwrap keeps the ways to hijack the
// connection and to set its deadlines.
type answerWriter struct {
	http.ResponseWriter
	status int // 0 until something was answered
}

// WriteHeader notes the first status.
func (w *answerWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write answers 200 unless a status was given.
func (w *answerWriter) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap returns the writer of the server, for http.ResponseController.
func (w *answerWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// handler is what the mux calls once the guard has let a request in.
func (a *API) handler(route *Route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := checkPathValues(r, route)
		if err == nil {
			if route.serve != nil {
				err = route.serve(a, w, r)
			} else {
				err = a.forward(w, r, route)
			}
		}
		if err != nil {
			a.fail(w, r, err)
		}
	})
}

// fail is the one place that renders an error. The cause of an internal one may
// tell of the host's inside, so it goes to the log, and the caller gets its
// first line and a name to find it by.
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

// panicked answers for a handler that panicked, if there is still an answer to
// give, and goes on with the next request.
func (a *API) panicked(w *answerWriter, r *http.Request, p any) {
	if p == http.ErrAbortHandler { //nolint:errorlint // the very value that net/http asks for
		panic(p)
	}
	id := occurrence()
	a.log.Error("handler panicked", "id", id, "method", r.Method, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
	if w.status != 0 {
		panic(http.ErrAbortHandler) // half an answer must not pass for a whole one
	}
	patience(w)
	httpproblem.Write(w, &httpproblem.Error{Instance: id, Err: abi.New(abi.Internal, "a fault of the host; its log has more under the name of this instance")})
}

// occurrence names one fault, for its caller and the log.
func occurrence() string { return "urn:sentinel:fault:" + rand.Text() }

// patience bounds how long the answer may take to leave.
func patience(w http.ResponseWriter) {
	// Not every writer has deadlines; the listener's own bounds hold then.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime))
}

// writeJSON answers with a value.
func writeJSON(w http.ResponseWriter, status int, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	if status == 0 {
		status = http.StatusOK
	}
	w.Header().Set("Content-Type", "application/json")
	patience(w)
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // an error here is the other side's going away
	return nil
}

// observe tells whoever counts requests.
func (a *API) observe(r *http.Request, route *Route, w *answerWriter, began time.Time) {
	if a.log.Enabled(r.Context(), slog.LevelDebug) {
		// Without query and headers, which may hold what is nobody's business.
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
		o.Status = max(route.Status, http.StatusOK) // it wrote nothing, or the connection is no longer HTTP's
	}
	a.opt.Observe(o)
}
