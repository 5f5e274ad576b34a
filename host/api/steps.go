package api

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// stepRoutes are the steps of a definition, by address. The id may be that of a
// run: then the run alone is edited.
func stepRoutes() []Route {
	return []Route{
		{
			Method: http.MethodGet, Pattern: "/v1/sentinels/{id}/steps", Name: "listSteps", Access: AccessToken, Command: "sentinel/step/list",
			Summary: "List the steps, nested ones too, with their addresses.", answer: tagged,
		},
		{
			// If-Match may be left out here, as S002's command line does: the
			// engine tries again on whatever revision is newest.
			Method: http.MethodPost, Pattern: "/v1/sentinels/{id}/steps", Name: "addStep", Access: AccessToken, Command: "sentinel/step/add",
			Summary: "Insert a step at an index or address.", Status: http.StatusCreated, body: "*", match: matchOptional, answer: tagged,
		},
		{
			Method: http.MethodGet, Pattern: "/v1/sentinels/{id}/steps/{address}", Name: "getStep", Access: AccessToken,
			Summary: "Show one step.", serve: (*API).getStep,
		},
		{
			Method: http.MethodPut, Pattern: "/v1/sentinels/{id}/steps/{address}", Name: "replaceStep", Access: AccessToken, Command: "sentinel/step/update",
			Summary: "Replace a step.", body: "step", match: matchRequired, answer: tagged,
		},
		{
			Method: http.MethodPatch, Pattern: "/v1/sentinels/{id}/steps/{address}", Name: "updateStep", Access: AccessToken, Command: "sentinel/step/update",
			Summary: "Change parameters of a step; those not named stay.", body: "params", match: matchRequired, answer: tagged,
		},
		{
			Method: http.MethodDelete, Pattern: "/v1/sentinels/{id}/steps/{address}", Name: "removeStep", Access: AccessToken, Command: "sentinel/step/remove",
			Summary: "Remove a step.", match: matchRequired, answer: tagged,
		},
	}
}

// getStep picks one step out of the list. A command for it would save little:
// a definition has at most a megabyte, and its steps are decoded already.
func (a *API) getStep(w http.ResponseWriter, r *http.Request) error {
	id, address := r.PathValue("id"), r.PathValue("address")
	text, err := a.call(r, "sentinel/step/list", map[string]string{"sentinelId": id})
	if err != nil {
		return err
	}
	list, err := members(text)
	if err != nil {
		return err
	}
	var steps []map[string]json.RawMessage
	if err := json.Unmarshal(list["steps"], &steps); err != nil {
		return fmt.Errorf("list steps of %q: %w", id, err)
	}
	for _, step := range steps {
		if !isText(step["address"], address) && !isText(step["id"], address) {
			continue
		}
		// What the list says of all of them, an ETag among it, goes along.
		for _, name := range []string{"sentinelId", "run", "revision", "hash"} {
			if v, ok := list[name]; ok {
				step[name] = v
			}
		}
		out, err := json.Marshal(step)
		if err != nil {
			return err
		}
		return tagged(a, w, r, &Route{}, out)
	}
	return &abi.Error{Code: abi.NotFound, Field: "address", Message: fmt.Sprintf("sentinel %q has no step %q", id, address)}
}

// isText reports whether raw is the JSON of a text.
func isText(raw json.RawMessage, text string) bool {
	var s string
	return json.Unmarshal(raw, &s) == nil && s == text
}
