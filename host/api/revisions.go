package api

import "net/http"

// revisionRoutes are the history of a definition.
func revisionRoutes() []Route {
	return []Route{
		{
			Method: http.MethodGet, Pattern: "/v1/sentinels/{id}/revisions", Name: "listRevisions", Access: AccessToken, Command: "sentinel/revisions",
			Summary: "List the revisions that are kept, the newest first.",
		},
		{
			Method: http.MethodGet, Pattern: "/v1/sentinels/{id}/revisions/{revision}", Name: "getRevision", Access: AccessToken,
			Command: "sentinel/revision", Summary: "Show an earlier definition.", answer: tagged,
		},
		{
			Method: http.MethodGet, Pattern: "/v1/sentinels/{id}/diff", Name: "diffRevisions", Access: AccessToken, Command: "sentinel/diff",
			Summary: "Show what changed between two revisions.",
			Query: []Param{
				{Name: "from", Type: "integer", Summary: "the older revision"},
				{Name: "to", Type: "integer", Summary: "the newer one; the newest if not given"},
			},
		},
		{
			// Rolling back is an edit like others and makes a revision of its own:
			// history is only ever added to.
			Method: http.MethodPost, Pattern: "/v1/sentinels/{id}/rollback", Name: "rollback", Access: AccessToken, Command: "sentinel/rollback",
			Summary: "Make a new revision with the content of an earlier one.", body: "*", match: matchOptional, answer: tagged,
		},
	}
}
