package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A Run is where a run stands.
type Run struct {
	ID        sentinels.RunID   `json:"id"`
	Sentinel  sentinels.ID      `json:"sentinel"`
	Name      string            `json:"name"`
	Status    sentinels.Status  `json:"status"`
	Reason    string            `json:"reason,omitempty"`
	Limit     string            `json:"limit,omitempty"` // that ended or paused it
	Step      string            `json:"step,omitempty"`  // address of the step that failed
	Error     *abi.Error        `json:"error,omitempty"`
	Iteration int               `json:"iteration"`
	Revision  int               `json:"revision,omitempty"`
	Workspace string            `json:"workspace"`
	Parent    sentinels.RunID   `json:"parent,omitempty"`
	Root      sentinels.RunID   `json:"root"`
	Usage     sentinels.Usage   `json:"usage"`
	ElapsedMs int64             `json:"elapsedMs"` // in which it was not paused
	CreatedAt time.Time         `json:"createdAt"`
	UpdatedAt time.Time         `json:"updatedAt"`
	EndedAt   time.Time         `json:"endedAt,omitzero"`
	Decisions []PendingDecision `json:"decisions,omitempty"` // what a person has to decide
	Live      bool              `json:"live"`                // a process executes it now
}

// A PendingDecision is something that a person has to decide before a run continues.
type PendingDecision struct {
	Call      string    `json:"call"`     // its name, the same in each iteration
	Question  string    `json:"question"` // names it in a [Decision]
	Kind      string    `json:"kind"`
	Prompt    string    `json:"prompt"`
	Approvers []string  `json:"approvers,omitempty"`
	Choices   []string  `json:"choices"`
	Since     time.Time `json:"since"`
	Deadline  time.Time `json:"deadline,omitzero"` // of an approval with a time limit
}

// StartOptions say how a run starts. The zero value starts it in the server's
// workspace, without inputs.
type StartOptions struct {
	Inputs    map[string]any `json:"inputs,omitempty"`
	Event     any            `json:"event,omitempty"`     // payload of $event
	Workspace string         `json:"workspace,omitempty"` // absolute, on the server's machine
	Pinned    bool           `json:"pinned,omitempty"`    // stay on this revision when the sentinel is edited
	Force     bool           `json:"force,omitempty"`     // start beside active runs, whatever concurrency of the definition says

	// Key makes a repetition return the run that the first call started.
	// Default none.
	Key string `json:"-"`
}

// Start starts a run of a sentinel.
func (c *Client) Start(ctx context.Context, id sentinels.ID, opt StartOptions) (sentinels.RunID, error) {
	var out struct{ Run sentinels.RunID }
	err := c.do(ctx, request{method: http.MethodPost, path: []string{"v1", "sentinels", string(id), "runs"}, body: opt, key: opt.Key}, &out)
	return out.Run, err
}

// Run returns where a run stands.
func (c *Client) Run(ctx context.Context, id sentinels.RunID) (Run, error) {
	var out struct{ State Run }
	err := c.do(ctx, request{path: []string{"v1", "runs", string(id)}, query: url.Values{"brief": {"true"}}}, &out)
	return out.State, err
}

// waitStep is how long one request of [Client.Wait] waits. Proxies often end
// requests that are idle for a minute.
const waitStep = 50 * time.Second

// Result returns how a run ended. Before its end that is the error conflict.
func (c *Client) Result(ctx context.Context, id sentinels.RunID) (run.Result, error) {
	return c.result(ctx, id, nil)
}

// Wait waits for the end of a run and returns how it ended.
func (c *Client) Wait(ctx context.Context, id sentinels.RunID) (run.Result, error) {
	for {
		res, err := c.result(ctx, id, url.Values{"wait": {waitStep.String()}})
		if abi.CodeOf(err) != abi.Conflict {
			return res, err
		}
	}
}

func (c *Client) result(ctx context.Context, id sentinels.RunID, query url.Values) (run.Result, error) {
	var out run.Result
	err := c.do(ctx, request{path: []string{"v1", "runs", string(id), "result"}, query: query}, &out)
	out.Duration = time.Duration(out.Millis) * time.Millisecond
	return out, err
}

// RunFilter selects runs; empty fields select all.
type RunFilter struct {
	Sentinel sentinels.ID
	Status   sentinels.Status
	Since    time.Time // started then or later
}

// Runs yields runs, the newest first, asking for a page whenever one is used
// up. An error ends it.
func (c *Client) Runs(ctx context.Context, f RunFilter) iter.Seq2[Run, error] {
	return func(yield func(Run, error) bool) {
		query := url.Values{"limit": {"100"}}
		if f.Sentinel != "" {
			query.Set("sentinel", string(f.Sentinel))
		}
		if f.Status != "" {
			query.Set("status", string(f.Status))
		}
		if !f.Since.IsZero() {
			query.Set("since", f.Since.Format(time.RFC3339Nano))
		}
		for {
			var page struct {
				Runs []Run
				Next string
			}
			if err := c.do(ctx, request{path: []string{"v1", "runs"}, query: query}, &page); err != nil {
				yield(Run{}, err)
				return
			}
			for _, r := range page.Runs {
				if !yield(r, nil) {
					return
				}
			}
			if page.Next == "" {
				return
			}
			query.Set("before", page.Next)
		}
	}
}

// steer calls one of the commands that control a run.
func (c *Client) steer(ctx context.Context, id sentinels.RunID, verb string, body, into any) error {
	return c.do(ctx, request{method: http.MethodPost, path: []string{"v1", "runs", string(id), verb}, body: body}, into)
}

// Stop stops a run and everything it started, and returns when it has ended.
func (c *Client) Stop(ctx context.Context, id sentinels.RunID) (Run, error) {
	var out Run
	err := c.steer(ctx, id, "stop", struct{}{}, &out)
	return out, err
}

// Pause holds a run back at its next step.
func (c *Client) Pause(ctx context.Context, id sentinels.RunID) (Run, error) {
	var out Run
	err := c.steer(ctx, id, "pause", struct{}{}, &out)
	return out, err
}

// Room is what a resumed run may use beyond the limits it has; 0 adds nothing.
type Room struct {
	MaxIterations int     `json:"maxIterations,omitempty"`
	TimeoutMs     int64   `json:"timeoutMs,omitempty"`
	BudgetUSD     float64 `json:"budgetUsd,omitempty"`
	BudgetTokens  int64   `json:"budgetTokens,omitempty"`
	BudgetCalls   int64   `json:"budgetCalls,omitempty"`
}

// Resume lets a paused run go on.
func (c *Client) Resume(ctx context.Context, id sentinels.RunID, more Room) (Run, error) {
	var out Run
	err := c.steer(ctx, id, "resume", more, &out)
	return out, err
}

// A Decision answers a [PendingDecision].
type Decision struct {
	Question string          `json:"question"` // of the [PendingDecision]; if another one is asked by now, the decision is refused
	Call     string          `json:"call,omitempty"`
	Verdict  string          `json:"verdict"` // one of its choices
	By       string          `json:"by,omitempty"`
	Comment  string          `json:"comment,omitempty"`
	Result   json.RawMessage `json:"result,omitempty"` // with skip: what the call is taken to have answered
}

// Decide answers what a run waits for.
func (c *Client) Decide(ctx context.Context, id sentinels.RunID, d Decision) (Run, error) {
	var out Run
	err := c.steer(ctx, id, "decide", d, &out)
	return out, err
}

// RetryOptions say what is run again. The zero value is all of it, with the
// definition it used last.
type RetryOptions struct {
	From         string `json:"from,omitempty"`         // address, id or name of a top-level step
	Iteration    int    `json:"iteration,omitempty"`    // in which From is; default the last
	WithRevision string `json:"withRevision,omitempty"` // "latest" or a number
	Force        bool   `json:"force,omitempty"`        // as in [StartOptions]
}

// Retry starts a run that does again what a run did.
func (c *Client) Retry(ctx context.Context, id sentinels.RunID, opt RetryOptions) (sentinels.RunID, error) {
	var out struct{ Run sentinels.RunID }
	err := c.steer(ctx, id, "retry", opt, &out)
	return out.Run, err
}

// Trace returns a page of what a run did, as JSON: the first one, or with the next of a page the
// one behind it. package runtime/trace puts pages together.
func (c *Client) Trace(ctx context.Context, id sentinels.RunID, after string) (json.RawMessage, error) {
	var out json.RawMessage
	query := url.Values{}
	if after != "" {
		query.Set("after", after)
	}
	err := c.do(ctx, request{path: []string{"v1", "runs", string(id), "trace"}, query: query}, &out)
	return out, err
}

// Logs yields the lines of what a run has told so far, from a line's number on.
// An error ends it.
func (c *Client) Logs(ctx context.Context, id sentinels.RunID, from int) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		for {
			next, more, err := c.logPage(ctx, id, from, yield)
			if err != nil {
				yield(nil, err)
			}
			if err != nil || !more || next == from {
				return
			}
			from = next
		}
	}
}

// logPage yields one page; more is false when the caller has stopped reading.
func (c *Client) logPage(ctx context.Context, id sentinels.RunID, from int, yield func(json.RawMessage, error) bool) (next int, more bool, err error) {
	r := request{path: []string{"v1", "runs", string(id), "logs"}, query: url.Values{"offset": {strconv.Itoa(from)}, "limit": {"1000"}}}
	res, err := c.send(ctx, r)
	if err != nil {
		return 0, false, err
	}
	defer res.Body.Close()
	if next, err = strconv.Atoi(res.Header.Get("Sentinel-Next-Offset")); err != nil {
		return 0, false, fmt.Errorf("read answer of %q: next offset: %w", c.what(r), err)
	}
	in := bufio.NewReader(io.LimitReader(res.Body, maxAnswer))
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return next, true, nil
		}
		if err != nil {
			return 0, false, c.connectionError(ctx, r, err)
		}
		if !yield(line, nil) {
			return next, false, nil
		}
	}
}

// Output implements [Engine].
func (c *Client) Output(ctx context.Context, opt OutputOptions) (io.ReadCloser, error) {
	query := url.Values{"execution": {opt.Execution}}
	for name, value := range map[string]string{"stream": opt.Stream, "tail": strconv.Itoa(opt.Tail), "times": strconv.FormatBool(opt.Times), "follow": strconv.FormatBool(opt.Follow)} {
		if value != "" && value != "0" && value != "false" {
			query.Set(name, value)
		}
	}
	return c.stream(ctx, request{path: []string{"v1", "runs", string(opt.Run), "steps", opt.Step, "output"}, query: query})
}

// Backup returns a backup of the state of the server, which the caller closes. One that
// ends early is not complete, which reading it shows; see package backup.
func (c *Client) Backup(ctx context.Context, secrets bool) (io.ReadCloser, error) {
	query := url.Values{}
	if secrets {
		query.Set("secrets", "true")
	}
	return c.stream(ctx, request{path: []string{"v1", "backup"}, query: query})
}
