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

// A Problem is the JSON object of RFC 9457. It has no member "type", which means
// "about:blank": the title is that of the HTTP status.
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

	// Line and Column are the position of the mistake in the request's body, from 1;
	// the column counts characters. Path is the position in the value, as in
	// "steps[2].command". For a missing member they are the position where it
	// belongs. 0 and empty: unknown.
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	Path   string `json:"path,omitempty"`

	// Revision and Changes are set with status 412: the definition's current
	// revision, and the changes since the revision that the edit was based on.
	Revision int             `json:"revision,omitempty"`
	Changes  json.RawMessage `json:"changes,omitempty"`
}

// An Error is an error with an HTTP status that no code maps to, such as 401 or
// 412, or with more members than [abi.Error] has.
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

// BadJSON is the error for text that is not valid JSON or has the wrong members.
// what names the text; err is the error of package strictjson.
func BadJSON(what string, err error) error {
	bad := &abi.Error{Code: abi.BadFields, Permanent: true, Message: fmt.Sprintf("%s: %v", what, err)}
	at := (*strictjson.Error)(nil)
	if !errors.As(err, &at) {
		return bad
	}
	bad.Field = at.Path
	return &Error{Line: at.Line, Column: at.Column, Path: at.Path, Err: bad}
}

// Of returns the problem for an error. An error without a code is internal.
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

// Write writes the problem for err as the response.
func Write(w http.ResponseWriter, err error) {
	p := Of(err)
	h := w.Header()
	h.Set("Content-Type", Type)
	if p.RetryAfterMs > 0 {
		h.Set("Retry-After", strconv.FormatInt((p.RetryAfterMs+999)/1000, 10)) // whole seconds, never too early
	}
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // it fails only if the client has disconnected
}

// Read decodes the error of a response. If the body is not a problem, the error has
// a code by the status; who names the server in it.
func Read(who string, status int, contentType string, body []byte) *abi.Error {
	var p Problem
	media, _, _ := mime.ParseMediaType(contentType)
	if media != Type || strictjson.DecodeForeign(body, &p) != nil || p.Detail == "" || p.Code == "" {
		return abi.New(codeOf(status), fmt.Sprintf("%s responded with status %d and no problem details", who, status))
	}
	return &abi.Error{Code: p.Code, Message: p.Detail, Hint: p.Hint, Field: p.Field, RetryAfterMs: p.RetryAfterMs, Permanent: p.Permanent}
}
