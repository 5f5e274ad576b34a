package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/internal/httpproblem"
	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// The ETag of a definition is its revision in quotes; an edit says in If-Match
// which one it was made on (API.md, R1 to R4).

// made is what an edit says it was made on: a revision of the sentinel, or,
// where one run has edits of its own, the hash of its definition, since those
// edits count within a revision. The zero value says nothing.
type made struct {
	revision int
	hash     string
}

// precondition turns If-Match into what commands know it by and returns it.
func (a *API) precondition(r *http.Request, route *Route, params map[string]json.RawMessage) (made, error) {
	if route.match == matchNone {
		return made{}, nil
	}
	given, none := r.Header.Values("If-Match"), r.Header.Values("If-None-Match")
	if len(none) > 0 {
		// It would mean "only if it is not there yet". Passing it over would
		// replace what the caller wanted to keep.
		return made{}, &abi.Error{Code: abi.BadFields, Permanent: true, Field: "If-None-Match",
			Message: "If-None-Match is for reads", Hint: "POST /v1/sentinels creates and never replaces"}
	}
	if len(given) == 0 {
		if route.match == matchOptional {
			return made{}, nil
		}
		return made{}, &httpproblem.Error{Status: http.StatusPreconditionRequired, Err: &abi.Error{
			Code: abi.BadFields, Permanent: true, Field: "If-Match", Message: "the edit does not say which revision it was made on",
			Hint: `send the ETag of what you read as If-Match: "7", or If-Match: * to overwrite whatever is there`,
		}}
	}
	if len(given) == 1 && strings.TrimSpace(given[0]) == "*" {
		return made{}, nil
	}
	m, err := parseTag(given)
	switch {
	case err != nil:
		return made{}, err
	case m.hash != "":
		params["hash"], err = json.Marshal(m.hash)
	default:
		params["revision"] = strconv.AppendInt(nil, int64(m.revision), 10)
	}
	return m, err
}

// validHash is how the hash of a definition is written. It is much longer than
// a revision, so that one is never taken for the other.
var validHash = lazyregexp.New(`^[0-9a-f]{32,128}$`)

// parseTag reads one strong tag. The quotes may be left out: people forget them
// on command lines, and nothing else could be meant.
func parseTag(given []string) (made, error) {
	text := strings.TrimSpace(given[0])
	if n := len(text); n > 2 && text[0] == '"' && text[n-1] == '"' {
		text = text[1 : n-1]
	}
	if len(given) == 1 && validHash.MatchString(text) {
		return made{hash: text}, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || len(given) > 1 || n < 1 || n > 1e9 || strconv.Itoa(n) != text {
		return made{}, &abi.Error{Code: abi.BadFields, Permanent: true, Field: "If-Match", Message: fmt.Sprintf("If-Match %.40q is not one revision", given[0]),
			Hint: `send the ETag of what you read, such as "7"`}
	}
	return made{revision: n}, nil
}

// stale turns the conflict of an edit that was made on something else into 412
// with what has changed since. Any other error stays as it is. What is there now
// is asked for after the refusal, so it may be newer than what was refused for;
// that is what the caller has to look at in any case.
func (a *API) stale(r *http.Request, params map[string]json.RawMessage, m made, err error) error {
	if m == (made{}) || abi.CodeOf(err) != abi.Conflict {
		return err
	}
	id := params["sentinelId"]
	ask := r.Clone(r.Context())
	ask.Header.Del(keyHeader) // the questions are ours
	text, asked := a.call(ask, "sentinel/export", map[string]any{"sentinelId": id})
	var now struct {
		Revision int
		Hash     string
	}
	if asked != nil || json.Unmarshal(text, &now) != nil || now.Revision == m.revision || now.Hash == m.hash && m.hash != "" {
		return err // a conflict about something else
	}
	e := &httpproblem.Error{Status: http.StatusPreconditionFailed, Revision: now.Revision, Err: err}
	if m.hash != "" {
		return e // the previous hash is not known
	}
	// The old revision may be gone by now; then there is nothing to compare.
	if diff, asked := a.call(ask, "sentinel/diff", map[string]any{"sentinelId": id, "from": m.revision, "to": now.Revision}); asked == nil {
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
		Run      string `json:"run"` // of what is a run's own
		Revision int    `json:"revision"`
		Hash     string `json:"hash"`
	}
	switch {
	case json.Unmarshal(result, &head) != nil:
		return ""
	case head.Run != "" && validHash.MatchString(head.Hash):
		return strconv.Quote(head.Hash)
	case head.Revision == 0:
		return ""
	}
	return strconv.Quote(strconv.Itoa(head.Revision))
}
