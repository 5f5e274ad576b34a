package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/sentinel-runtime/sentinel/host/client"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A carrier carries out the run that is followed: the engine in this process,
// or a server.
type carrier interface {
	Wait(ctx context.Context, id sentinels.RunID) (runtime.Result, error)
	Runs(f runtime.RunFilter) ([]runtime.RunInfo, error)
	Status(id sentinels.RunID) (runtime.RunInfo, error)
	Stop(ctx context.Context, id sentinels.RunID) error
	Decide(ctx context.Context, id sentinels.RunID, d runtime.Decision) error
}

// A served run is one that a server carries out. What it tells comes through
// the server's live feed, in the place of the engine's own calls.
//
// # Concurrency
//
// Its goroutine watches the feed until the run is over; close ends it and
// waits. The methods may be called by anyone.
type served struct {
	ctx    context.Context // of following the run; carrier's methods have none of their own
	s      *session
	id     sentinels.RunID
	told   *feed
	over   chan struct{} // closed when the run has ended
	failed chan error    // why it cannot be watched any more; capacity 1
	cancel context.CancelFunc
	ended  sync.WaitGroup
}

// watchRun watches a run from a place in the feed on that is before its first
// word, so that nothing it tells is missed.
func watchRun(ctx context.Context, s *session, id sentinels.RunID, cursor string, told *feed) *served {
	c := &served{s: s, id: id, told: told, over: make(chan struct{}), failed: make(chan error, 1)}
	c.ctx, c.cancel = context.WithCancel(ctx)
	c.ended.Go(func() { c.watch(cursor) })
	return c
}

// close stops watching. The run goes on.
func (c *served) close() {
	c.cancel()
	c.ended.Wait()
}

// watch reads the feed until the run has ended. Both topics are needed: a child
// that is followed by itself is the root of no tree.
func (c *served) watch(cursor string) {
	topics := []string{"run:" + string(c.id) + "/tree", "run:" + string(c.id)}
	err := c.s.live.Watch(c.ctx, client.WatchOptions{Topics: topics, Cursor: cursor}, c.take)
	if err != nil && c.ctx.Err() == nil && !c.isOver() {
		c.failed <- err
	}
}

// errRunOver ends a watch: there is nothing more to be told.
var errRunOver = fmt.Errorf("the run is over")

// take hands on one message. Where some are missing, the end may be among them.
func (c *served) take(m client.Message) error {
	if m.Gap != nil {
		info, err := c.Status(c.id)
		if err != nil || !info.Status.Final() {
			return nil //nolint:nilerr // the feed goes on, and so does the watch
		}
		close(c.over)
		return errRunOver
	}
	var p runtime.Progress
	if err := json.Unmarshal(m.Event, &p); err != nil {
		return fmt.Errorf("read what run %s tells: %w", c.id, err)
	}
	p.Duration = millis(p.Millis)
	c.told.put(p)
	if p.Event == runtime.OnRunEnd && p.Run == c.id {
		close(c.over)
		return errRunOver
	}
	return nil
}

func (c *served) isOver() bool {
	select {
	case <-c.over:
		return true
	default:
		return false
	}
}

// Wait returns the result of the watched run.
func (c *served) Wait(ctx context.Context, id sentinels.RunID) (runtime.Result, error) {
	var res runtime.Result
	select {
	case <-c.over:
		return res, c.s.call(ctx, "sentinel/result", map[string]any{"run": id}, &res)
	case err := <-c.failed:
		return res, c.lost(err)
	case <-ctx.Done():
		return res, context.Cause(ctx)
	}
}

// lost says what it means that a run cannot be watched any more: nothing for the
// run, which the server takes up again when it comes back.
func (c *served) lost(err error) error {
	if e := abi.As(err); e == nil || e.Code != abi.Unavailable {
		return err
	}
	return &abi.Error{Code: abi.Unavailable, Message: fmt.Sprintf("follow run %s: %v", c.id, err),
		Hint: "the run goes on when the server does; `sentinel status " + string(c.id) + "` shows where it is"}
}

// Runs returns the runs that are not over, the newest first. The engine is asked
// by status, so that the runs of years do not have to be sent to find them.
func (c *served) Runs(runtime.RunFilter) ([]runtime.RunInfo, error) {
	var runs []runtime.RunInfo
	for _, status := range runtime.Unfinished() {
		var page listed
		err := c.s.call(c.ctx, "sentinel/list", map[string]any{"status": status, "only": "runs", "limit": 1000}, &page)
		if err != nil {
			return nil, err
		}
		runs = append(runs, page.Runs...)
	}
	// Ids are in the order of the starts.
	slices.SortFunc(runs, func(x, y runtime.RunInfo) int { return -strings.Compare(string(x.ID), string(y.ID)) })
	// A run may have changed its status between two questions.
	return slices.CompactFunc(runs, func(x, y runtime.RunInfo) bool { return x.ID == y.ID }), nil
}

// Status returns where a run stands, as of the server's answer: by the time that
// it is here the run may have gone on.
func (c *served) Status(id sentinels.RunID) (runtime.RunInfo, error) {
	var info runtime.RunInfo
	return info, c.s.call(c.ctx, "sentinel/status", map[string]any{"run": id}, &info)
}

// Stop returns when the run and all below it have ended.
func (c *served) Stop(ctx context.Context, id sentinels.RunID) error {
	return c.s.call(ctx, "sentinel/stop", map[string]any{"run": id}, nil)
}

// Decide answers what a run waits for.
func (c *served) Decide(ctx context.Context, id sentinels.RunID, d runtime.Decision) error {
	params := map[string]any{"run": id, "verdict": d.Verdict, "by": d.By}
	if d.Call != "" {
		params["call"] = d.Call
	}
	if d.Comment != "" {
		params["comment"] = d.Comment
	}
	if d.Result != nil {
		params["result"] = d.Result
	}
	return c.s.call(ctx, "sentinel/decide", params, nil)
}

var (
	_ carrier = (*runtime.Runtime)(nil)
	_ carrier = (*served)(nil)
)
