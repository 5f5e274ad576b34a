package api

import (
	"fmt"
	"mime"
	"net/http"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/internal/httpproblem"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// checkContent holds a request's body to what its route takes. A page can send
// a form or plain text to any server without asking it first; JSON it cannot,
// so whatever changes something takes JSON only (API.md, G5). Where the type may be any,
// the check of the origin is the protection.
func (g *guard) checkContent(r *http.Request, route *Route) error {
	// A declared length is checked before a byte is read.
	limit := route.limit()
	if r.ContentLength > limit {
		return tooLarge(limit)
	}
	if timed, ok := r.Body.(*timedBody); ok {
		timed.ReadCloser = http.MaxBytesReader(nil, timed.ReadCloser, limit)
	} else {
		r.Body = http.MaxBytesReader(nil, r.Body, limit)
	}
	if route.raw || route.anyType || r.Method == http.MethodGet || r.Method == http.MethodHead {
		return nil
	}
	given := r.Header.Values("Content-Type")
	if len(given) == 0 && r.ContentLength == 0 && !g.api.opt.NoAuth {
		// `curl -X POST` without a body. The token is proof enough that no page
		// sent it; without tokens the type has to be.
		return nil
	}
	if len(given) == 1 {
		media, _, err := mime.ParseMediaType(given[0])
		if err == nil && (media == "application/json" || strings.HasSuffix(media, "+json")) {
			return nil
		}
	}
	return &httpproblem.Error{Status: http.StatusUnsupportedMediaType, Err: &abi.Error{
		Code: abi.BadFields, Permanent: true, Message: fmt.Sprintf("the body is %.80q, this takes JSON", strings.Join(given, ", ")),
		Hint: "send the header Content-Type: application/json",
	}}
}

// limit is how large a body of the route may be, in bytes.
func (r *Route) limit() int64 {
	if r.maxBody > 0 {
		return r.maxBody
	}
	return maxBody
}

// tooLarge is the error of a body beyond its limit.
func tooLarge(limit int64) error {
	return &abi.Error{Code: abi.Limit, Permanent: true, Message: fmt.Sprintf("the body has more than %d bytes", limit)}
}
