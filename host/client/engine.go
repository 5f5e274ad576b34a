package client

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// An Engine is a way to the engine: a [Client] of another process, or the engine in
// this one (process.Process). Errors of commands are the same in both: they have an
// *abi.Error in their chain.
type Engine interface {
	// Call calls a command with params, any value that is a JSON object or nil, and
	// decodes its result into the value that into points at, unless that is nil.
	// Ending ctx cancels the command.
	Call(ctx context.Context, name string, params, into any) error
	// Commands lists every command, sorted by name.
	Commands(ctx context.Context) ([]Command, error)
	// Cursor returns the current position of the live feed.
	Cursor(ctx context.Context) (string, error)
	// Watch calls fn with every message of the topics until ctx ends or fn fails,
	// whose error it returns.
	Watch(ctx context.Context, opt WatchOptions, fn func(Message) error) error
	// Logs yields the lines of a run's log, JSON each, from line number from, 0 for
	// all. A run without a log has no lines.
	Logs(ctx context.Context, id sentinels.RunID, from int) iter.Seq2[json.RawMessage, error]
}

var _ Engine = (*Client)(nil)
