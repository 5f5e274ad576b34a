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

// Commands are what the API is a door to. A [command.Registry] is one; a host
// wraps its own to add the workspace and the store to a call. Its methods are
// called concurrently.
type Commands interface {
	List() []command.Command
	Lookup(name string) (command.Command, bool)
	Call(ctx context.Context, call *command.Call) (json.RawMessage, error)
}

// Hooks take in the requests of webhooks. They check the secret themselves.
type Hooks interface {
	Receive(ctx context.Context, id sentinels.ID, trigger string, r triggers.Request) ([]triggers.Admission, error)
}

// Health says how a process is. The word is all that a caller without a token
// gets to see.
type Health struct {
	OK     bool   `json:"ok"`
	Status string `json:"status"`           // "ok", or why not in a word of lower case: "read_only"
	Detail any    `json:"detail,omitempty"` // for callers with a token
}

// Observation is one request that has been answered.
type Observation struct {
	Route    string // the pattern, "GET /v1/runs/{run}"; "other" for what is not in the table
	Status   int
	Duration time.Duration
}

// Options configure an [API]. Commands must be set.
type Options struct {
	// Commands is what there is to call.
	Commands Commands
	// Tokens says which bearer tokens are good. Default none is.
	Tokens Tokens
	// NoAuth lets callers from this machine in without a token. Callers from
	// elsewhere are refused then, whatever they bring. Default false.
	NoAuth bool
	// Hosts are values of the Host header that are good besides localhost,
	// 127.0.0.1, [::1] and the address of the listener, each with its port:
	// "sentinel.example.org" with the default port or the listener's, or
	// "sentinel.example.org:8443" exactly. Default none.
	Hosts []string
	// Hooks take webhooks. Default: there are none.
	Hooks Hooks
	// Feed serves the WebSocket at /ws. Default: there is none.
	Feed http.Handler
	// Metrics serves /metrics. Default: there are none.
	Metrics http.Handler
	// Logs opens what a run told, JSON a line. An error that is fs.ErrNotExist
	// means that it told nothing yet. Default: there are none.
	Logs func(run sentinels.RunID) (io.ReadCloser, error)
	// Health says how the process is. It must not wait. Default: well.
	Health func(ctx context.Context) Health
	// Ready says whether the process takes work. It must not wait. Default: it
	// does, until its listener closes.
	Ready func(ctx context.Context) Health
	// Mounts are handlers of others, guarded like our own. Default none.
	Mounts []Mount
	// Observe is told of every request, from its own goroutine; it must not
	// block. Default nobody is.
	Observe func(Observation)
	// Version is the program's. Default "dev".
	Version string
	// Logger takes faults, with what their callers are not told. Default
	// discards.
	Logger *slog.Logger
}
