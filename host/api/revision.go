package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/problem"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// An ETag of a definition is its revision in quotes; an edit says in If-Match
// which one it was made on (API.md, R1 to R4).

// noRevision says that an edit named no revision.
const noRevision = -1

// precondition turns If-Match and If-None-Match into the command's revision and
// returns the one the edit was made on, or noRevision.
func (a *API) precondition(r *http.Request, route *Route, params map[string]json.RawMessage) (int, error) {
	if route.match == matchNone {
		return noRevision, nil
	}
	given, none := r.Header.Values("If-Match"), r.Header.Values("If-None-Match")
	if len(none) > 0 && r.Method != http.MethodGet && r.Method != http.MethodHead {
		return noRevision, &abi.Error{Code: abi.BadFields, Permanent: true, Field: "If-None-Match",
			Message: "If-None-Match is for reads", Hint: "POST /v1/sentinels creates and never replaces"}
	}
	if len(given) == 0 {
		if route.match == matchOptional {
			return noRevision, nil
		}
		return noRevision, &problem.Error{Status: http.StatusPreconditionRequired, Err: &abi.Error{
			Code: abi.BadFields, Permanent: true, Field: "If-Match", Message: "the edit does not say which revision it was made on",
			Hint: `send the ETag of what you read as If-Match: "7", or If-Match: * to overwrite whatever is there`,
		}}
	}
	if len(given) == 1 && strings.TrimSpace(given[0]) == "*" {
		return noRevision, nil
	}
	n, err := parseTag(given)
	if err != nil {
		return noRevision, err
	}
	params["revision"] = strconv.AppendInt(nil, int64(n), 10)
	return n, nil
}

// parseTag reads one strong tag. The quotes may be left out.
func parseTag(given []string) (int, error) {
	text := strings.TrimSpace(given[0])
	if n := len(text); n > 2 && text[0] == '"' && text[n-1] == '"' {
		text = text[1 : n-1]
	}
	n, err := strconv.Atoi(text)
	if err != nil || len(given) > 1 || n < 1 || n > 1e9 || strconv.Itoa(n) != text {
		return 0, &abi.Error{Code: abi.BadFields, Permanent: true, Field: "If-Match", Message: fmt.Sprintf("If-Match %.40q is not one revision", given[0]),
			Hint: `send the ETag of what you read, such as "7"`}
	}
	return n, nil
}

// stale turns the conflict of an edit that was made on another revision into
// 412 with what has changed since. Any other error stays as it is.
func (a *API) stale(r *http.Request, params map[string]json.RawMessage, made int, err error) error {
	if made == noRevision || abi.CodeOf(err) != abi.Conflict {
		return err
	}
	id := params["sentinelId"]
	ask := r.Clone(r.Context())
	ask.Header.Del(keyHeader) // the questions are ours
	text, asked := a.call(ask, "sentinel/export", map[string]any{"sentinelId": id})
	var now struct{ Revision int }
	if asked != nil || json.Unmarshal(text, &now) != nil || now.Revision == made {
		return err // a conflict about something else
	}
	e := &problem.Error{Status: http.StatusPreconditionFailed, Revision: now.Revision, Err: err}
	// The old revision may be gone by now; then there is nothing to compare.
	if diff, asked := a.call(ask, "sentinel/diff", map[string]any{"sentinelId": id, "from": made, "to": now.Revision}); asked == nil {
		e.Changes = diff
	}
	return e
}

// tagged answers with the result's revision as ETag, and with 304 if the caller
// has it already.
func tagged(_ *API, w http.ResponseWriter, r *http.Request, route *Route, result json.RawMessage) error {
	tag := tagOf(result)
	if tag == "" {
		return writeJSON(w, route.Status, result)
	}
	w.Header().Set("ETag", tag)
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		for have := range strings.SplitSeq(r.Header.Get("If-None-Match"), ",") {
			have = strings.TrimPrefix(strings.TrimSpace(have), "W/")
			if have == tag || have == "*" {
				w.WriteHeader(http.StatusNotModified)
				return nil
			}
		}
	}
	return writeJSON(w, route.Status, result)
}

// tagOf returns the ETag of a result that has a revision, else "".
func tagOf(result json.RawMessage) string {
	var head struct {
		Revision int `json:"revision"`
	}
	if json.Unmarshal(result, &head) != nil || head.Revision == 0 {
		return ""
	}
	return fmt.Sprintf("%q", strconv.Itoa(head.Revision))
}
