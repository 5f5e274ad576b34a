package step

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/sentinel-runtime/sentinel/runtime/internal/eventlog"
	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

type waitRequest struct {
	DurationMs *int64          `json:"durationMs"`
	Until      string          `json:"until"`
	Event      string          `json:"event"`
	Source     string          `json:"source"` // of Event: "", "engine" or "user"
	Run        sentinels.RunID `json:"run"`
	Decision   *struct {
		Prompt    string   `json:"prompt"`
		Approvers []string `json:"approvers"`
		CallKind  string   `json:"callKind"`
	} `json:"decision"`
	TimeoutMs int64 `json:"timeoutMs"`
}

type waitResult struct {
	TimedOut bool            `json:"timedOut"`
	Event    json.RawMessage `json:"event,omitempty"`
	Result   *childResult    `json:"result,omitempty"`
	Decision *waitDecision   `json:"decision,omitempty"`
	// Of a decision that timed out.
	Reason   string     `json:"reason,omitempty"`
	Deadline *time.Time `json:"deadline,omitempty"`
}

type waitDecision struct {
	Verdict string          `json:"verdict"`
	By      string          `json:"by"`
	At      time.Time       `json:"at"`
	Comment string          `json:"comment,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
}

// startWait begins a call of ABI clause A6.11. Waits use calendar time: one that ends
// while the host is down is over when the host is up again.
func (a *attempt) startWait(ctx context.Context, c *call) error {
	var req waitRequest
	e := parse(c, &req)
	if e == nil {
		e = req.check()
	}
	if e != nil {
		a.complete(c, callEnd{err: e})
		return nil
	}
	body := journal.CallStartBody{}
	now := a.svc.Calendar.Now()
	switch {
	case req.DurationMs != nil:
		c.until = now.Add(time.Duration(*req.DurationMs) * time.Millisecond)
		body.Due = c.until.UnixMicro()
		body.Label = (time.Duration(*req.DurationMs) * time.Millisecond).String()
	case req.Until != "":
		c.until, _ = time.Parse(time.RFC3339, req.Until)
		c.timeOfDay = true
		body.Due, body.Label = c.until.UnixMicro(), req.Until
	case req.Event != "":
		body.Cursor, body.Label = a.run.Cursor(req.Event), req.Event
	case req.Run != "":
		body.Child, body.Label = req.Run, string(req.Run)
	default:
		body.Label = "decision"
	}
	if body.Due == 0 && req.TimeoutMs > 0 {
		body.Due = now.Add(time.Duration(req.TimeoutMs) * time.Millisecond).UnixMicro()
	}
	return a.beginCall(ctx, c, body)
}

// resumeWait restores the end of a wait that a crash interrupted, if it waits only for
// a time.
func (a *attempt) resumeWait(c *call) {
	var req waitRequest
	if parse(c, &req) != nil || req.DurationMs == nil && req.Until == "" {
		return
	}
	c.until, c.timeOfDay = time.UnixMicro(c.start.Due), req.Until != ""
}

// maxWaitMs is the longest wait, in milliseconds: 31 years, which a duration in nanoseconds can
// hold. It is the maximum of whole numbers in definitions, too.
const maxWaitMs = 1_000_000_000_000

// maxCallKind limits the text of a kind of calls, in bytes.
const maxCallKind = 200

// check returns an error unless the request names exactly one thing to wait for.
func (r *waitRequest) check() *abi.Error {
	n := 0
	for _, set := range []bool{r.DurationMs != nil, r.Until != "", r.Event != "", r.Run != "", r.Decision != nil} {
		if set {
			n++
		}
	}
	switch {
	case n != 1:
		return failure.New(abi.BadFields, "%s: want exactly one of durationMs, until, event, run and decision", abi.FuncWait)
	case r.DurationMs != nil && *r.DurationMs < 0, r.TimeoutMs < 0:
		return failure.New(abi.BadFields, "%s: negative durationMs or timeoutMs", abi.FuncWait)
	case r.DurationMs != nil && *r.DurationMs > maxWaitMs, r.TimeoutMs > maxWaitMs:
		return failure.New(abi.BadFields, "%s: durationMs and timeoutMs are at most %d", abi.FuncWait, int64(maxWaitMs))
	case r.Decision != nil && (len(r.Decision.CallKind) > maxCallKind || strings.ContainsFunc(r.Decision.CallKind, unicode.IsControl)):
		return failure.New(abi.BadFields, "%s: decision.callKind has at most %d bytes and no control characters", abi.FuncWait, maxCallKind)
	case r.Source != "" && (r.Event == "" || !slices.Contains(sentinels.EventSources(), sentinels.EventSource(r.Source))):
		return failure.New(abi.BadFields, "%s: invalid source %q: want engine or user, with event", abi.FuncWait, r.Source)
	case r.Until != "":
		if _, err := time.Parse(time.RFC3339, r.Until); err != nil {
			return failure.New(abi.BadFields, "%s: invalid until %q: want an RFC 3339 time", abi.FuncWait, r.Until)
		}
	}
	return nil
}

// doWait waits for an event, a run or a decision. A wait for a time is over when doWait
// is called.
func (a *attempt) doWait(ctx context.Context, c *call) (callEnd, error) {
	var req waitRequest
	if e := parse(c, &req); e != nil {
		return callEnd{err: e}, nil
	}
	if req.DurationMs != nil || req.Until != "" { // the time was reached, or ctx has ended
		if ctx.Err() != nil {
			return callEnd{}, context.Cause(ctx)
		}
		return reply(waitResult{})
	}
	limited, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if c.start.Due != 0 {
		t := a.svc.Calendar.After(time.UnixMicro(c.start.Due), func() { cancel(errDue) })
		defer t.Stop()
	}
	var res waitResult
	var end journal.CallEndBody
	var err error
	switch {
	case req.Event != "":
		if sentinels.IsRunEvent(req.Event) { // a plugin may compute the pattern, which no text has then
			a.svc.Expected.Set(a.callKey(c), req.Event)
			defer a.svc.Expected.Set(a.callKey(c))
		}
		var m eventlog.Match
		m, err = a.svc.EventLog(req.Event).Wait(limited, req.Event, c.start.Cursor)
		for err == nil && !a.svc.Takes(req.Event, sentinels.EventSource(req.Source), &m.Event) {
			m, err = a.svc.EventLog(req.Event).Wait(limited, req.Event, m.Offset)
		}
		if err == nil {
			res.Event, end.EventSeq, end.Hops, end.Path = eventlog.Variable(&m.Event), m.Offset, m.Event.Hops, m.Event.Path
			if end.EventBy = eventlog.GivenBy(&m.Event); end.EventBy != "" {
				end.Event = &m.Event
			}
		}
	case req.Run != "":
		res.Result, err = a.awaitChild(limited, req.Run)
	default:
		res.Decision, err = a.awaitDecision(limited, c, req.approval(c.start.Due))
	}
	if errors.Is(err, errDue) {
		res, err = req.timedOut(c.start.Due), nil
	}
	if err != nil {
		if e := abi.As(err); e != nil && ctx.Err() == nil {
			return callEnd{err: e}, nil
		}
		return callEnd{}, err
	}
	out, err := reply(res)
	out.body = end
	return out, err
}

// approval returns the question of a wait for a decision. due is when the wait ends, 0 for never.
func (r *waitRequest) approval(due int64) run.PendingDecision {
	q := run.PendingDecision{Kind: run.DecisionApproval, Prompt: r.Decision.Prompt, Approvers: r.Decision.Approvers, CallKind: r.Decision.CallKind}
	if due != 0 {
		q.Deadline, q.TimeoutMs = time.UnixMicro(due).UTC(), r.TimeoutMs
	}
	return q
}

// timedOut returns the result of a wait that ended at its time limit.
func (r *waitRequest) timedOut(due int64) waitResult {
	res := waitResult{TimedOut: true}
	if r.Decision != nil {
		deadline := time.UnixMicro(due).UTC()
		res.Reason, res.Deadline = run.LimitEnded(r.TimeoutMs, deadline), &deadline
	}
	return res
}

// errDue is the cause of the context's end when a wait times out.
var errDue = errors.New("wait is due")

// awaitChild waits for a run. If the attempt is cancelled meanwhile and has started the
// run, that is stopped, because nothing else would stop it.
func (a *attempt) awaitChild(ctx context.Context, id sentinels.RunID) (*childResult, error) {
	res, err := a.run.AwaitRun(ctx, id)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, ErrShutdown) && !errors.Is(cause, errDue) && a.started(id) {
			a.run.StopRun(id, cause)
		}
		return nil, err
	}
	child := forParent(res)
	return &child, nil
}

// started reports whether the attempt has started a run.
func (a *attempt) started(id sentinels.RunID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.calls {
		if c.function != abi.FuncSpawn {
			continue
		}
		select {
		case <-c.done:
			if bytes.Contains(c.result, []byte(`"`+string(id)+`"`)) {
				return true
			}
		default:
		}
	}
	return false
}
