package api

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// Commands are the commands that the API serves. [command.Registry] implements
// it; a host wraps its registry to add the workspace and the store to a call.
// The methods are called concurrently.
type Commands interface {
	List() []command.Command
	Version() string // another one whenever List returns others
	Lookup(name string) (command.Command, bool)
	Call(ctx context.Context, call *command.Call) (json.RawMessage, error)
}

// Hooks receives the requests of webhooks. It checks their secrets.
type Hooks interface {
	Receive(ctx context.Context, id sentinels.ID, trigger string, r triggers.Request) ([]triggers.Admission, error)
}

// Health is the state of a process. Callers without a token see only Status.
type Health struct {
	OK     bool   `json:"ok"`
	Status string `json:"status"`           // "ok", or the reason as a lower-case word: "read_only"
	Detail any    `json:"detail,omitempty"` // for callers with a token
}

// Observation describes one answered request.
type Observation struct {
	Route    string // the pattern, "GET /v1/runs/{run}"; "other" for requests without a route
	Status   int
	Duration time.Duration
}

// Options configure an [API]. Commands must be set.
type Options struct {
	// Commands are the commands to serve.
	Commands Commands
	// Tokens checks bearer tokens. Default: no token is valid.
	Tokens Tokens
	// NoAuth admits callers from this machine without a token, and refuses all
	// callers from other machines, even with a token. Default false.
	NoAuth bool
	// Hosts are values of the Host header that are allowed besides localhost,
	// 127.0.0.1, [::1] and the address of the listener, each with its port:
	// "sentinel.example.org" with the default port or the listener's, or
	// "sentinel.example.org:8443" exactly. Default none.
	Hosts []string
	// Hooks receives webhooks. Default: all are refused.
	Hooks Hooks
	// Chain returns how many runs led to a request to a webhook, and their sentinels, if a
	// step sent it: process is the one at the other end if it is below this process, else 0,
	// and remote is the address of its connection. Default: no step sends any.
	Chain func(process int, remote string) (hops int, path []string)
	// Sends reports whether this process itself sent the request that comes from an address, for a
	// step: such a request is an agent's, whatever its token is. Default: it sends none.
	Sends func(remote string) bool
	// Feed serves the WebSocket at /ws. Default: not found.
	Feed http.Handler
	// RefuseSocket opens a WebSocket and closes it with a code, for a client without a
	// token (given is false) or with an invalid one. A page sees the code, but not the
	// status of a response. It must not wait for the client: refusals are answered one at a
	// time. Default: the response is 401.
	RefuseSocket func(w http.ResponseWriter, r *http.Request, given bool)
	// Metrics serves /metrics. Default: not found.
	Metrics http.Handler
	// Logs opens the run log of a run, one JSON value a line, as the principal of ctx may read it.
	// fs.ErrNotExist means that the log is still empty. Default: not found.
	Logs func(ctx context.Context, run sentinels.RunID) (io.ReadCloser, error)
	// Output opens the output of an execution, as the principal of ctx may read it. Default: not found.
	Output func(ctx context.Context, execution string, opt OutputOptions) (Output, error)
	// Schema returns the JSON Schema of definitions, for the OpenAPI document.
	// Default: a definition is any object.
	Schema func() json.RawMessage
	// Health returns the health of the process. It must not block. Default: ok.
	Health func(ctx context.Context) Health
	// Ready returns whether the process accepts work. It must not block.
	// Default: ok, until its listener closes.
	Ready func(ctx context.Context) Health
	// Mounts are further handlers, which are guarded like the routes of the
	// API. Default none.
	Mounts []Mount
	// Denied is called for every request that is refused because of who made it: without
	// a valid token, or by a viewer that may not change anything. It must not block.
	// Default: not called.
	Denied func(Denial)
	// Observe is called after every request, in the request's goroutine. It
	// must not block. Default: not called.
	Observe func(Observation)
	// AwaitTime is how long one request waits for the end of a run. Default 5 min.
	AwaitTime time.Duration
	// Version is the version of the program. Default "dev".
	Version string
	// Logger logs faults, with details that responses leave out. Default
	// discards.
	Logger *slog.Logger
}
