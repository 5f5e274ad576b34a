package httpproblem

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// Type is the media type of a [Problem].
const Type = "application/problem+json"

// A Problem is an error as RFC 9457 has it. The member "type" stays away:
// "about:blank" says that title is all there is to say about the status.
type Problem struct {
	Title        string   `json:"title"`
	Status       int      `json:"status"`
	Detail       string   `json:"detail"`
	Instance     string   `json:"instance,omitempty"` // names this one occurrence, for the log
	Code         abi.Code `json:"code"`
	Hint         string   `json:"hint,omitempty"`
	Field        string   `json:"field,omitempty"`
	RetryAfterMs int64    `json:"retryAfterMs,omitempty"`
	Permanent    bool     `json:"permanent,omitempty"`

	// Line and Column say where in the request's body the mistake is, from 1; the
	// column counts characters. Path is the place in the value, "steps[2].command".
	// Of a member that is missing they say where it belongs. 0 and empty: unknown.
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	Path   string `json:"path,omitempty"`

	// Revision and Changes go with 412: what the definition is at now, and what
	// changed since the revision that the edit was made on.
	Revision int             `json:"revision,omitempty"`
	Changes  json.RawMessage `json:"changes,omitempty"`
}

// An Error is an error with a status of HTTP's own that no code stands for,
// such as 401 or 412, or with members beside those of [abi.Error].
type Error struct {
	Status   int // 0: that of the code
	Instance string
	Line     int // with Column and Path as in [Problem]
	Column   int
	Path     string
	Revision int
	Changes  json.RawMessage
	Err      error // never nil
}

// Error returns the text of the cause.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// BadJSON is the error of a text that is not JSON as it has to be. what names the
// text; err is that of package strictjson.
func BadJSON(what string, err error) error {
	bad := &abi.Error{Code: abi.BadFields, Permanent: true, Message: fmt.Sprintf("%s: %v", what, err)}
	place := (*strictjson.Error)(nil)
	if !errors.As(err, &place) {
		return bad
	}
	bad.Field = place.Path
	return &Error{Line: place.Line, Column: place.Column, Path: place.Path, Err: bad}
}

// Of makes the problem of an error. Errors without a code are internal.
func Of(err error) Problem {
	p := Problem{Code: abi.CodeOf(err), Detail: err.Error()}
	if e := abi.As(err); e != nil {
		p.Hint, p.Field, p.RetryAfterMs, p.Permanent = e.Hint, e.Field, e.RetryAfterMs, e.Permanent
	}
	p.Status = Status(p.Code)
	if own := (*Error)(nil); errors.As(err, &own) {
		p.Instance, p.Revision, p.Changes = own.Instance, own.Revision, own.Changes
		p.Line, p.Column, p.Path = own.Line, own.Column, own.Path
		if own.Status != 0 {
			p.Status = own.Status
		}
	}
	p.Title = http.StatusText(p.Status)
	return p
}

// Write answers with the problem of err.
func Write(w http.ResponseWriter, err error) {
	p := Of(err)
	h := w.Header()
	h.Set("Content-Type", Type)
	if p.RetryAfterMs > 0 {
		h.Set("Retry-After", strconv.FormatInt((p.RetryAfterMs+999)/1000, 10)) // whole seconds, never too early
	}
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // an error here is the other side's going away
}

// Read makes the error again that the other side had. Whatever the body is, it
// returns an error that says what is known; who names the other side for it.
func Read(who string, status int, contentType string, body []byte) *abi.Error {
	var p Problem
	media, _, _ := mime.ParseMediaType(contentType)
	if media != Type || json.Unmarshal(body, &p) != nil || p.Detail == "" || p.Code == "" {
		return abi.New(codeOf(status), fmt.Sprintf("%s answered with status %d and no problem", who, status))
	}
	return &abi.Error{Code: p.Code, Message: p.Detail, Hint: p.Hint, Field: p.Field, RetryAfterMs: p.RetryAfterMs, Permanent: p.Permanent}
}
