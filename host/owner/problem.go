package owner

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// problem is an error as RFC 9457 has it. Type stays away: "about:blank" says
// that title is all there is to say about the status.
type problem struct {
	Title        string   `json:"title"`
	Status       int      `json:"status"`
	Detail       string   `json:"detail"`
	Code         abi.Code `json:"code"`
	Hint         string   `json:"hint,omitempty"`
	Field        string   `json:"field,omitempty"`
	RetryAfterMs int64    `json:"retryAfterMs,omitempty"`
	Permanent    bool     `json:"permanent,omitempty"`
}

const problemType = "application/problem+json"

// statusOf maps every code to its HTTP status.
func statusOf(code abi.Code) int {
	switch code {
	case abi.BadFields:
		return http.StatusBadRequest
	case abi.Denied:
		return http.StatusForbidden
	case abi.NotFound:
		return http.StatusNotFound
	case abi.Conflict, abi.Cancelled, abi.Interrupted:
		return http.StatusConflict
	case abi.Timeout:
		return http.StatusGatewayTimeout
	case abi.Limit, abi.Memory:
		return http.StatusRequestEntityTooLarge
	case abi.Unavailable:
		return http.StatusServiceUnavailable
	case abi.Trap, abi.Output, abi.Plugin:
		return http.StatusBadGateway
	}
	return http.StatusInternalServerError
}

func writeProblem(w http.ResponseWriter, err error) {
	p := problem{Code: abi.CodeOf(err), Detail: err.Error()}
	if e := abi.As(err); e != nil {
		p.Hint, p.Field, p.RetryAfterMs, p.Permanent = e.Hint, e.Field, e.RetryAfterMs, e.Permanent
	}
	p.Status = statusOf(p.Code)
	p.Title = http.StatusText(p.Status)
	w.Header().Set("Content-Type", problemType)
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // an error here is the other side's going away
}

// readProblem makes the error again that the other side had. Whatever the body
// is, it returns an error that says what is known.
func readProblem(status int, contentType string, body []byte) *abi.Error {
	var p problem
	if contentType != problemType || json.Unmarshal(body, &p) != nil || p.Detail == "" || p.Code == "" {
		return abi.New(abi.Internal, fmt.Sprintf("the process that has the store answered with status %d and no problem", status))
	}
	return &abi.Error{Code: p.Code, Message: p.Detail, Hint: p.Hint, Field: p.Field, RetryAfterMs: p.RetryAfterMs, Permanent: p.Permanent}
}
