package api

import (
	"net/http"
	"slices"
)

// table is every route of our own. Files named for a resource hold its lines.
func table() []Route {
	return slices.Concat(
		processRoutes(), commandRoutes(), sentinelRoutes(), stepRoutes(), revisionRoutes(), runRoutes(), eventRoutes(), hookRoutes(), ticketRoutes(), searchRoutes(), verifyRoutes(), inboxRoutes(),
	)
}

// processRoutes are about the process itself.
func processRoutes() []Route {
	return []Route{
		{
			Method: http.MethodGet, Pattern: "/health", Name: "health", Access: AccessOpen,
			Summary: "Say whether the process is well, in a word.", serve: (*API).health,
		},
		{
			Method: http.MethodGet, Pattern: "/ready", Name: "ready", Access: AccessOpen,
			Summary: "Say whether the process takes work, in a word.", serve: (*API).ready,
		},
		{
			Method: http.MethodGet, Pattern: "/v1/health", Name: "healthDetail", Access: AccessToken,
			Summary: "Say how the process is, in detail.", serve: (*API).healthDetail,
		},
		{
			// Not open: labels show what a host does.
			Method: http.MethodGet, Pattern: "/metrics", Name: "metrics", Access: AccessToken, media: "text/plain",
			Summary: "Metrics for Prometheus.", serve: (*API).metrics,
		},
		{
			// Not open either: it lists the commands, those of MCP servers too.
			Method: http.MethodGet, Pattern: "/openapi.json", Name: "openapi", Access: AccessToken,
			Summary: "This document.", serve: (*API).openapi,
		},
		{
			// The one route that takes a token from a subprotocol as well.
			Method: http.MethodGet, Pattern: "/ws", Name: "feed", Access: AccessToken, Status: http.StatusSwitchingProtocols,
			Summary: "Follow what happens, over a WebSocket.", serve: (*API).feed,
			Query: []Param{
				{Name: "topics", Type: "string", Summary: "what to follow, between commas: run:ID, runs, sentinels, triggers, events:PATTERN, health"},
				{Name: "cursor", Type: "string", Summary: "where an earlier connection ended"},
			},
		},
		{
			Method: http.MethodGet, Pattern: "/v1/plugins", Name: "listPlugins", Access: AccessToken, Command: "plugin/list",
			Summary: "List the plugins and the step types they provide.",
		},
	}
}
