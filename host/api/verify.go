package api

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// verifyRoutes are the verifier as clients of older ones know it. Like those of tickets
// they read JSON whatever the content type says.
func verifyRoutes() []Route {
	all := []Route{
		{Method: http.MethodPost, Pattern: "/verify", Name: "verify", Command: "verify/run", body: "*", Summary: "Check the acceptance criteria of a ticket against a branch, and answer with the verdict."},
		{Method: http.MethodGet, Pattern: "/status/{ticket}", Name: "verificationStatus", Command: "verify/status", answer: (*API).answerVerified, Summary: "Read the last verification of a ticket."},
		{Method: http.MethodGet, Pattern: "/verify/{ticket}/history", Name: "verificationHistory", Command: "verify/history", Query: []Param{
			{Name: "limit", Type: "integer", Summary: "verifications on the page, 50 if not given, at most 200"},
			{Name: "offset", Type: "integer", Summary: "newest verifications to leave out"},
		}, Summary: "Read the verifications of a ticket, newest first."},
	}
	for i := range all {
		all[i].Access, all[i].anyType = AccessToken, true
	}
	return all
}

// VerifierOnly reports whether a path belongs to a server with the verifier alone.
func VerifierOnly(path string) bool {
	return path == "/verify" || path == "/health" || path == "/ready" || strings.HasPrefix(path, "/verify/") || strings.HasPrefix(path, "/status/")
}

// answerVerified answers with the last result, and with the state that the verification
// has now.
func (a *API) answerVerified(w http.ResponseWriter, _ *http.Request, route *Route, result json.RawMessage) error {
	var out struct {
		ID     string                     `json:"ticket_id"`
		Status string                     `json:"verification_status"`
		Result map[string]json.RawMessage `json:"result"`
	}
	if err := json.Unmarshal(result, &out); err != nil {
		return err
	}
	fields := map[string]any{}
	for name, value := range out.Result {
		fields[name] = value
	}
	fields["ticket_id"], fields["verification_status"] = out.ID, out.Status
	return writeJSON(w, route.Status, fields)
}

// only answers the paths that a server is for, and 404 else.
func (a *API) only(paths func(string) bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !paths(r.URL.Path) {
			a.fail(w, r, &abi.Error{Code: abi.NotFound, Permanent: true, Message: r.URL.Path + " is not on this port", Hint: "it has the verifier alone: POST /verify, GET /status/TICKET, GET /verify/TICKET/history"})
			return
		}
		next.ServeHTTP(w, r)
	})
}
