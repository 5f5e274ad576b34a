package api

import "net/http"

// eventRoutes are the log of events. What happens next is on the feed.
func eventRoutes() []Route {
	return []Route{
		{
			Method: http.MethodGet, Pattern: "/v1/events", Name: "listEvents", Access: AccessToken, Command: "events/tail",
			Summary: "Read the newest events, the newest last.",
			Query: []Param{
				{Name: "pattern", Type: "string", Summary: "which events, such as git:*; all if not given"},
				{Name: "limit", Type: "integer", Summary: "how many at most, 1 to 1000; 50 if not given"},
			},
		},
		{
			// The response follows when the event is durable. The runs that it starts are in
			// the feed, and by each sentinel's triggers.
			Method: http.MethodPost, Pattern: "/v1/events", Name: "emitEvent", Access: AccessToken, Command: "events/emit",
			Summary: "Emit an event, which starts the sentinels that wait for it.", Status: http.StatusCreated, body: "*",
		},
	}
}
