package api

import "net/http"

// statusQuery are the query parameters of sentinel/status.
var statusQuery = []Param{
	{Name: "after", Type: "integer", Summary: "a traceCursor: the 50 trace entries behind it; the newest if not given"},
	{Name: "brief", Type: "boolean", Summary: "true leaves out definition, current step, variables and trace"},
}

// runRoutes are runs and what steers them.
func runRoutes() []Route {
	runs := []Route{
		{
			// The cursor is a run's id. Ids are in the order of starts, so pages
			// neither overlap nor miss a run while new ones start.
			Method: http.MethodGet, Pattern: "/v1/runs", Name: "listRuns", Access: AccessToken, Command: "sentinel/list",
			Summary: "List runs, the newest first. The answer's next is the before of the next page.", answer: only("runs", "next"), fixed: map[string]any{"only": "runs"},
			Query: []Param{
				{Name: "sentinel", Type: "string", As: "sentinelId", Summary: "only runs of this sentinel"},
				{Name: "status", Type: "string", Summary: "only runs with this status, or one of these, separated by commas"},
				{Name: "since", Type: "string", Summary: "only runs that started then or later: a time as RFC 3339 has it"},
				{Name: "before", Type: "string", Summary: "only runs older than this one"},
				{Name: "limit", Type: "integer", Summary: "how many at most, 1 to 1000; 50 if not given"},
			},
		},
		{
			Method: http.MethodGet, Pattern: "/v1/runs/{run}", Name: "getRun", Access: AccessToken, Command: "sentinel/status",
			Summary: "Show where a run stands: its definition, its variables, its current step and what it did last.",
			Query:   statusQuery,
		},
		{
			Method: http.MethodGet, Pattern: "/v1/runs/{run}/result", Name: "getResult", Access: AccessToken, Command: "sentinel/result",
			Summary: "Show how a run ended; before its end that is a conflict.", serve: (*API).result, Query: []Param{waitParam},
		},
		{
			Method: http.MethodGet, Pattern: "/v1/runs/{run}/trace", Name: "traceRun", Access: AccessToken, Command: "sentinel/trace",
			Summary: "Show what a run did: iterations, steps, attempts and host calls. The answer's next is the after of the next page.",
			Query: []Param{
				{Name: "iteration", Type: "integer", Summary: "only this one"},
				{Name: "newest", Type: "boolean", Summary: "true: only the newest iteration"},
				{Name: "step", Type: "string", Summary: "only steps with this path or address, and those around them"},
				{Name: "after", Type: "string", Summary: "next of the page before"},
				{Name: "limit", Type: "integer", Summary: "records of the journal that the page is made of, 1 to 10000; 10000 if not given"},
			},
		},
		{
			Method: http.MethodGet, Pattern: "/v1/runs/{run}/steps", Name: "listRunSteps", Access: AccessToken,
			Summary: "List the steps of an iteration with the state that went in and came out.", serve: (*API).runSteps,
			Query: []Param{
				{Name: "iteration", Type: "integer", Summary: "which iteration; the newest if not given"},
				{Name: "after", Type: "string", Summary: "next of the page before"},
			},
		},
		{
			Method: http.MethodGet, Pattern: "/v1/runs/{run}/steps/{path}", Name: "getRunStep", Access: AccessToken,
			Summary: "Show one step execution: fields as resolved, output, variables it set, attempts and host calls.", serve: (*API).runStep,
			Query: []Param{{Name: "iteration", Type: "integer", Summary: "which iteration; the newest if not given"}},
		},
		{
			Method: http.MethodGet, Pattern: "/v1/runs/{run}/steps/{path}/output", Name: "readOutput", Access: AccessToken, media: plainText,
			Summary: "Read what the commands of a step have printed, as bytes, with range requests.", serve: (*API).output, Query: outputQuery,
		},
		{
			// Lines rather than bytes: a client can go on without knowing how
			// they were encoded.
			Method: http.MethodGet, Pattern: "/v1/runs/{run}/logs", Name: "readLogs", Access: AccessToken, media: ndjson,
			Summary: "Read what a run told, JSON a line.", serve: (*API).logs,
			Query: []Param{
				{Name: "offset", Type: "integer", Summary: "the first line to read, from 0; 0 if not given"},
				{Name: "limit", Type: "integer", Summary: "how many lines at most, 1 to 10000; 1000 if not given"},
				{Name: "tail", Type: "integer", Summary: "the last so many lines, in place of offset and limit"},
			},
		},
	}
	// What the verbs answer is the run as it stands afterwards.
	for _, verb := range []struct{ name, summary string }{
		{"stop", "Stop a run and everything it started."},
		{"pause", "Hold a run back at its next step."},
		{"resume", "Let a paused run go on, with more room if it reached a limit."},
		{"decide", "Answer what a run waits for: an approval, or a call that a crash left in doubt."},
	} {
		runs = append(runs, Route{
			Method: http.MethodPost, Pattern: "/v1/runs/{run}/" + verb.name, Name: verb.name + "Run", Access: AccessToken,
			Command: "sentinel/" + verb.name, Summary: verb.summary, body: "*",
		})
	}
	return append(runs,
		Route{
			Method: http.MethodPost, Pattern: "/v1/runs/{run}/retry", Name: "retryRun", Access: AccessToken, Command: "sentinel/retry",
			Summary: "Retry it, entirely or from a step.", Status: http.StatusCreated, body: "*", answer: created("/v1/runs/", "run"),
		},
		Route{
			Method: http.MethodPost, Pattern: "/v1/runs/{run}/fork", Name: "forkRun", Access: AccessToken, Command: "sentinel/fork",
			Summary: "Start a run from an iteration of this one, with an edited step.", Status: http.StatusCreated, body: "*", answer: created("/v1/runs/", "run"),
		},
	)
}
