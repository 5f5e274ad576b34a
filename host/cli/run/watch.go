package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/client"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A runWatch reads the progress of a run and of its descendants from the live feed.
//
// # Concurrency
//
// A goroutine reads the feed until the run has ended; close ends it and waits.
type runWatch struct {
	progress *progressQueue
	ended    chan struct{} // closed when the run has ended
	failed   chan error    // why the feed cannot be read any more; capacity 1
	lost     chan struct{} // capacity 1: progress is missing

	mu     sync.Mutex
	active map[sentinels.RunID]bool // runs of the tree that executed when they last reported

	app     verbs
	session *app.Session
	id      sentinels.RunID
	cancel  context.CancelFunc
	reading sync.WaitGroup
}

// watchRun reads the progress of a run from a cursor on that is older than the run.
func watchRun(ctx context.Context, a verbs, s *app.Session, id sentinels.RunID, cursor string) *runWatch {
	w := &runWatch{
		progress: newProgressQueue(), ended: make(chan struct{}), failed: make(chan error, 1), lost: make(chan struct{}, 1),
		active: map[sentinels.RunID]bool{},
		app:    a, session: s, id: id,
	}
	ctx, w.cancel = context.WithCancel(ctx)
	w.reading.Go(func() { w.read(ctx, cursor) })
	return w
}

// close ends the watch. The run continues.
func (w *runWatch) close() {
	w.cancel()
	w.reading.Wait()
}

// read reads both topics: a child that is followed by itself is not the root of a tree.
func (w *runWatch) read(ctx context.Context, cursor string) {
	opt := w.session.WatchOptions(cursor, "run:"+string(w.id)+"/tree", "run:"+string(w.id))
	err := w.session.Watch(ctx, opt, func(m client.Message) error { return w.take(ctx, m) })
	switch {
	case errors.Is(err, errRunEnded):
		close(w.ended)
	case ctx.Err() == nil:
		w.failed <- err
	}
}

// take takes one message. The end of the run may be among messages that are missing.
func (w *runWatch) take(ctx context.Context, m client.Message) error {
	if m.Gap != nil {
		select {
		case w.lost <- struct{}{}:
		default:
		}
		info, err := w.session.RunInfo(ctx, w.id)
		if err == nil && info.Status.Final() {
			return errRunEnded
		}
		return nil //nolint:nilerr // the feed continues, and so does the watch
	}
	p, err := progressOf(m)
	if err != nil {
		return fmt.Errorf("read progress of run %s: %w", w.id, err)
	}
	w.progress.put(p)
	w.note(p)
	if p.Event == runtime.OnRunEnd && p.Run == w.id {
		if w.session.Process == nil {
			return errRunEnded
		}
		close(w.ended) // its children may go on, and this process stays for them
	}
	return nil
}

// note keeps track of the runs that execute.
func (w *runWatch) note(p runtime.Progress) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p.Event == runtime.OnRunEnd || p.Event == runtime.OnStatus && p.Status != sentinels.StatusRunning {
		delete(w.active, p.Run)
	} else {
		w.active[p.Run] = true
	}
}

// lastProgress is how long the progress of runs that have ended may take to arrive.
const lastProgress = 2 * time.Second

// drain waits for the last progress of the runs of the tree, which have ended.
func (w *runWatch) drain(ctx context.Context) {
	for end := time.Now().Add(lastProgress); time.Now().Before(end) && ctx.Err() == nil; {
		w.mu.Lock()
		left := len(w.active)
		w.mu.Unlock()
		if left == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// wait returns the result of the run once it has ended. If the process that executes
// it is gone, the store has its result.
func (w *runWatch) wait(ctx context.Context) (runtime.Result, error) {
	var err error
	select {
	case <-w.ended:
		var res runtime.Result
		if res, err = w.app.result(ctx, w.session, w.id); err == nil {
			return res, nil
		}
	case err = <-w.failed:
	case <-ctx.Done():
		return runtime.Result{}, context.Cause(ctx)
	}
	if abi.CodeOf(err) != abi.Unavailable {
		return runtime.Result{}, err
	}
	if w.session.Serves() {
		return runtime.Result{}, &abi.Error{Code: abi.Unavailable, Message: fmt.Sprintf("follow run %s: %v", w.id, err),
			Hint: "the run continues when the server does; `sentinel status " + string(w.id) + "` shows its state"}
	}
	return w.app.resultFromStore(ctx, w.id)
}

// resultFromStore returns the result of a run whose process has ended.
func (a verbs) resultFromStore(ctx context.Context, id sentinels.RunID) (res runtime.Result, err error) {
	s, err := a.Connect(ctx, true)
	if err != nil {
		return res, err
	}
	defer a.CloseSession(s, &err)
	if res, err = a.result(ctx, s, id); abi.CodeOf(err) == abi.Conflict { // it has not ended
		err = &abi.Error{Code: abi.Unavailable, Message: fmt.Sprintf("the process that executed run %s has ended", id),
			Hint: fmt.Sprintf("sentinel run%s --resume %s continues it", a.SameStore(), id)}
	}
	return res, err
}

// progressOf returns the progress that a message reports.
func progressOf(m client.Message) (runtime.Progress, error) {
	if m.Progress != nil {
		return *m.Progress, nil
	}
	return readProgress(m.Event)
}

// readProgress decodes progress from the feed or from a log.
func readProgress(text []byte) (p runtime.Progress, err error) {
	err = json.Unmarshal(text, &p)
	p.Duration = output.Millis(p.Millis)
	return p, err
}

// A progressQueue is an unbounded queue between the live feed, which drops entries for
// slow readers, and a terminal, which may be slow.
//
// # Concurrency
//
// put may be called by any goroutine, take by one.
type progressQueue struct {
	more chan struct{} // capacity 1: the queue is not empty

	mu     sync.Mutex
	queued []runtime.Progress
}

func newProgressQueue() *progressQueue { return &progressQueue{more: make(chan struct{}, 1)} }

func (q *progressQueue) put(p runtime.Progress) {
	q.mu.Lock()
	q.queued = append(q.queued, p)
	q.mu.Unlock()
	select {
	case q.more <- struct{}{}:
	default:
	}
}

// take returns what was put since the last call, in order.
func (q *progressQueue) take() []runtime.Progress {
	q.mu.Lock()
	defer q.mu.Unlock()
	queued := q.queued
	q.queued = nil
	return queued
}
