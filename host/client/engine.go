package client

import (
	"context"
	"encoding/json"
	"io"
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
	// Output opens what an execution has printed; see [OutputOptions].
	Output(ctx context.Context, opt OutputOptions) (io.ReadCloser, error)
}

// OutputOptions say whose output is read, and what of it.
type OutputOptions struct {
	Run       sentinels.RunID
	Step      string // execution path of the step that started it
	Execution string
	Stream    string // stdout or stderr; empty for both
	Tail      int    // the last so many lines; 0 for all
	Times     bool   // each line begins with its time
	Follow    bool   // continue while it is printed
}

var _ Engine = (*Client)(nil)
