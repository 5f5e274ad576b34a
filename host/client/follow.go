package client

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// endKind is what a run tells last.
const endKind = "run.end"

// lastWords is how long the messages of a run that is known to be over may
// still take to arrive.
const lastWords = 2 * time.Second

// Follow calls fn with everything that a run tells from now on and returns, when
// the run is over, how it stands then. A run that is over already tells nothing.
// Earlier progress is in [Client.Logs]. It returns fn's error if fn fails.
func (c *Client) Follow(ctx context.Context, id sentinels.RunID, fn func(Message) error) (Run, error) {
	run, err := c.Run(ctx, id)
	if err != nil || run.Status.Final() {
		return run, err
	}
	f := follower{client: c, id: id, fn: fn}
	watching, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	f.ctx, f.stop = watching, stop
	err = c.watch(watching, WatchOptions{Topics: []string{"run:" + string(id)}}, f.look, f.take)
	if f.timer != nil {
		f.timer.Stop()
	}
	if !errors.Is(err, errOver) {
		return run, err
	}
	return c.Run(ctx, id)
}

// follower sees the end of a run: by its last message, or, where messages may
// have been missed, by asking. Its methods are called by one goroutine.
type follower struct {
	client *Client
	ctx    context.Context
	stop   context.CancelCauseFunc
	id     sentinels.RunID
	fn     func(Message) error
	timer  *time.Timer // runs once the run is known to be over
}

// look asks whether the run has ended, and gives its last messages the time to
// arrive.
func (f *follower) look() error {
	run, err := f.client.Run(f.ctx, f.id)
	if abi.CodeOf(err) == abi.Unavailable {
		return &againError{err} // the server went away again; the next connection asks again
	}
	if err != nil {
		return err
	}
	if run.Status.Final() && f.timer == nil {
		f.timer = time.AfterFunc(f.client.lastWords, func() { f.stop(errOver) })
	}
	return nil
}

func (f *follower) take(m Message) error {
	if err := f.fn(m); err != nil {
		return err
	}
	if m.Gap != nil {
		return f.look()
	}
	var told struct {
		Event string          `json:"event"`
		Run   sentinels.RunID `json:"run"`
	}
	if json.Unmarshal(m.Event, &told) == nil && told.Event == endKind && told.Run == f.id {
		return errOver
	}
	return nil
}

// Cursor returns the place where the live feed is now: a [Client.Watch] from
// there tells everything that the caller does next.
func (c *Client) Cursor(ctx context.Context) (string, error) {
	cursor := ""
	w := watcher{
		client: c, topics: []string{"runs"}, cursor: &cursor,
		hello: func() error { return errOver }, fn: func(Message) error { return errOver },
	}
	err := w.once(ctx)
	if cursor != "" {
		return cursor, nil // the connection was ended by us
	}
	if last := (*finalError)(nil); errors.As(err, &last) {
		return "", last.err
	}
	return "", err
}
