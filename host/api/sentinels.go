package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
)

// sentinelRoutes are definitions as resources. A body is a definition in the
// form that files have; the answer names its revision.
func sentinelRoutes() []Route {
	return []Route{
		{
			Method: http.MethodGet, Pattern: "/v1/sentinels", Name: "listSentinels", Access: AccessToken, Command: "sentinel/list",
			Summary: "List the defined sentinels, at most 1000 on a page. The answer's next is the after of the next page.", answer: only("sentinels", "nextSentinel"), fixed: map[string]any{"only": "sentinels"},
			Query: []Param{
				{Name: "tag", Type: "string", Summary: "only sentinels with this tag"},
				{Name: "personaId", Type: "string", Summary: "only sentinels that this one created"},
				{Name: "after", Type: "string", Summary: "next of the page before"},
			},
		},
		{
			Method: http.MethodPost, Pattern: "/v1/sentinels", Name: "createSentinel", Access: AccessToken, Command: "sentinel/create",
			Summary: "Define a sentinel; another one with its id is a conflict.", Status: http.StatusCreated,
			body: "definition", answer: created("/v1/sentinels/", "sentinelId"),
		},
		{
			Method: http.MethodGet, Pattern: "/v1/sentinels/{id}", Name: "getSentinel", Access: AccessToken, Command: "sentinel/export",
			Summary: "Show the newest definition of a sentinel.", answer: tagged,
		},
		{
			Method: http.MethodPut, Pattern: "/v1/sentinels/{id}", Name: "updateSentinel", Access: AccessToken, Command: "sentinel/update",
			Summary: "Replace a definition by a new revision.", body: "definition", match: matchRequired, answer: tagged,
		},
		{
			Method: http.MethodDelete, Pattern: "/v1/sentinels/{id}", Name: "deleteSentinel", Access: AccessToken, Command: "sentinel/delete",
			Summary: "Delete a definition; its runs go on.", match: matchRequired,
		},
		{
			Method: http.MethodGet, Pattern: "/v1/sentinels/{id}/status", Name: "getSentinelStatus", Access: AccessToken, Command: "sentinel/status",
			Summary: "Show where the newest run of a sentinel stands; idle if it never ran.", Query: statusQuery,
		},
		{
			Method: http.MethodGet, Pattern: "/v1/sentinels/{id}/triggers", Name: "listTriggers", Access: AccessToken, Command: "sentinel/triggers",
			Summary: "Show the triggers of a sentinel, with the time each fires next.",
			Query:   []Param{{Name: "next", Type: "integer", Summary: "so many planned times of each schedule"}},
		},
		{
			// Inputs may be large: a text to work on, not only a setting.
			Method: http.MethodPost, Pattern: "/v1/sentinels/{id}/runs", Name: "startRun", Access: AccessToken, Command: "sentinel/start",
			Summary: "Start a run. With wait, the answer has its result if it ends by then.", Status: http.StatusCreated,
			body: "*", maxBody: maxCommandBody, answer: startedRun, Query: []Param{waitParam},
		},
	}
}

// answerFunc shapes a command's result.
type answerFunc = func(a *API, w http.ResponseWriter, r *http.Request, route *Route, result json.RawMessage) error

// only answers with one member of the result, and with the cursor of the next
// page if there is one.
func only(name, cursor string) answerFunc {
	return func(_ *API, w http.ResponseWriter, _ *http.Request, route *Route, result json.RawMessage) error {
		all, err := members(result)
		if err != nil {
			return err
		}
		// The command answers with both lists, one of them empty; the resource is
		// about one.
		out := map[string]json.RawMessage{name: all[name]}
		if next, ok := all[cursor]; ok && !bytes.Equal(next, []byte(`""`)) {
			out["next"] = next
		}
		return writeJSON(w, route.Status, out)
	}
}

// created answers 201 with the place of what the result names. The name comes
// from our own store, which has only plain ones.
func created(under, name string) answerFunc {
	return func(_ *API, w http.ResponseWriter, _ *http.Request, route *Route, result json.RawMessage) error {
		all, err := members(result)
		if err != nil {
			return err
		}
		var id string
		if err := json.Unmarshal(all[name], &id); err != nil {
			return fmt.Errorf("read result of %q: %s: %w", route.Command, name, err)
		}
		w.Header().Set("Location", under+id)
		if tag := tagOf(result); tag != "" {
			w.Header().Set("ETag", tag)
		}
		return writeJSON(w, route.Status, result)
	}
}
