package shell

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Executions of a run beyond MaxPerRun wait for their start, in the order of their calls, and so do those
// of all runs that execute for one agent: it can have any number of definitions and triggers.
// Those that a call waits for and those in the background have places of their own: a
// program that stays must not keep the one that ends it from its start.

// placesOf names the places of a run, of the runs of an agent, or of a caller without a run.
type placesOf struct {
	run        sentinels.RunID
	owner      string
	background bool
}

func (e *execution) places(background bool) placesOf {
	if e.agent != "" {
		return placesOf{owner: "runs of " + e.agent, background: background}
	}
	return placesOf{e.run, e.owner, background}
}

// agentOf returns the agent that a run executes for, "" for other callers.
func agentOf(r Record) string {
	if r.Run != "" && strings.HasPrefix(r.Share, string(command.ByAgent)+":") {
		return r.Share
	}
	return ""
}

// limitOf returns how many executions of a call's run or caller may live at once. Each may take
// all that one confined command may, so an agent without a run has fewer.
func (m *Manager) limitOf(call *command.Call) int {
	if call.Run == "" && call.Held() {
		return max(m.opt.MaxPerRun/4, 1)
	}
	return m.opt.MaxPerRun
}

// places counts the live executions of one kind. Its fields are guarded by Manager.mu.
type places struct {
	taken   int
	waiting []chan struct{} // closed when the execution has its place, or when the manager is closed
}

// refuse wakes all that wait, when the manager is closed.
func (p *places) refuse() {
	for _, c := range p.waiting {
		close(c)
	}
	p.waiting = nil
}

// reserve returns when e has a place among the live executions of its run. A model that
// starts one in the background does not wait, because only it may end the others.
func (m *Manager) reserve(ctx context.Context, e *execution, j job) error {
	key, limit := e.places(j.background), m.limitOf(j.call)
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return errClosing()
	}
	p := m.places[key]
	if p == nil {
		p = &places{}
		m.places[key] = p
	}
	if p.taken < limit && len(p.waiting) == 0 {
		p.taken++
		m.begin(e, j)
		m.mu.Unlock()
		return nil
	}
	kind := "executions of this run are live"
	if key.owner != "" {
		kind = "executions of " + key.owner + " are live"
	}
	if j.background {
		kind += " in the background"
	}
	reason := fmt.Sprintf("%d %s, its limit", limit, kind)
	if j.background && j.call.Held() {
		m.mu.Unlock()
		return &abi.Error{
			Code: abi.Limit, Message: "execute: " + reason,
			Hint: "wait for one with code/shell/watch, or end one with code/shell/kill",
		}
	}
	mine := make(chan struct{})
	p.waiting = append(p.waiting, mine)
	m.mu.Unlock()
	return j.call.InQueue(ctx, reason, func() error { return m.awaitPlace(ctx, e, j, p, mine) })
}

// awaitPlace waits until mine is closed, which gives e its place.
func (m *Manager) awaitPlace(ctx context.Context, e *execution, j job, p *places, mine chan struct{}) error {
	select {
	case <-mine:
	case <-ctx.Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := slices.Index(p.waiting, mine); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
		return context.Cause(ctx)
	}
	switch { // the place is given
	case m.closed:
		return errClosing()
	case ctx.Err() != nil:
		m.free(e.places(j.background))
		return context.Cause(ctx)
	}
	m.begin(e, j)
	return nil
}

func errClosing() error { return abi.New(abi.Cancelled, "execute: the host is shutting down") }

// begin counts an execution that has a place as live. The caller holds m.mu.
func (m *Manager) begin(e *execution, j job) {
	e.background = j.background
	m.live[e.run]++
	m.group.Add(1)
}

// release takes back what reserve counted, and gives the place to the execution that has
// waited longest. [Manager.Close] goes on only after the m.group.Done that follows it.
func (m *Manager) release(e *execution) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.live[e.run]--; m.live[e.run] <= 0 {
		delete(m.live, e.run)
	}
	m.free(e.places(e.background))
}

// free gives a place to the execution that has waited longest. The caller holds m.mu.
func (m *Manager) free(key placesOf) {
	p := m.places[key]
	if len(p.waiting) > 0 {
		close(p.waiting[0])
		p.waiting = p.waiting[1:]
		return
	}
	if p.taken--; p.taken == 0 {
		delete(m.places, key)
	}
}

// began reports whether the execution of a call may have started. Its record is written
// before its start; see [execution.launch].
func (m *Manager) began(ctx context.Context, key string, attempt int) (bool, error) {
	if err := m.recoverOnce(ctx); err != nil {
		return true, err
	}
	e, err := m.find(ctx, executionID(key, attemptOf("", attempt), randomID))
	if abi.CodeOf(err) == abi.NotFound {
		return false, nil
	}
	return err != nil || e.record().Starts > 0, err
}
