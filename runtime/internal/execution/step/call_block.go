package step

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

type blockRequest struct {
	Blocks []struct {
		Field string                     `json:"field"`
		Vars  map[string]json.RawMessage `json:"vars"`
	} `json:"blocks"`
	FailFast    bool  `json:"failFast"`
	Drain       bool  `json:"drain"`    // after a failure no further block begins
	Isolated    bool  `json:"isolated"` // the writes of the blocks are not kept
	Concurrency int   `json:"concurrency"`
	Total       int64 `json:"total"` // blocks of all calls of the step, for people
}

type blockResult struct {
	Success bool            `json:"success"`
	Output  json.RawMessage `json:"output,omitempty"`
	Error   *abi.Error      `json:"error,omitempty"`
	Skipped bool            `json:"skipped,omitempty"` // it did not begin

	cancelled bool
}

// startBlock begins a call of ABI clause A6.8: nested step lists, one in the step's own
// scope or several as parallel branches.
func (a *attempt) startBlock(ctx context.Context, c *call) error {
	var req blockRequest
	e := parse(c, &req)
	if e == nil && len(req.Blocks) == 0 {
		e = failure.New(abi.BadFields, "%s: blocks is empty: want at least one", abi.FuncBlock)
	}
	if e != nil {
		a.complete(c, callEnd{err: e})
		return nil
	}
	a.mu.Lock()
	first := a.block
	a.block += len(req.Blocks)
	a.mu.Unlock()
	body := journal.CallStartBody{Block: first, Isolated: req.Isolated}
	for _, b := range req.Blocks {
		body.Branches = append(body.Branches, a.svc.Redact.Values(b.Vars))
	}
	return a.beginCall(ctx, c, body)
}

// doBlock executes the nested lists.
func (a *attempt) doBlock(ctx context.Context, c *call) (callEnd, error) {
	var req blockRequest
	if e := parse(c, &req); e != nil {
		return callEnd{err: e}, nil
	}
	results := make([]blockResult, len(req.Blocks))
	end := callEnd{body: journal.CallEndBody{Blocks: len(req.Blocks)}}
	var err error
	if c.start.Block == 0 {
		a.reportItems(0, req.Total)
	}
	if len(req.Blocks) == 1 && !req.Isolated {
		results[0], err = a.runBlock(ctx, a.sc, req.Blocks[0].Field, c.start.Block)
		a.reportItems(int64(c.start.Block+1), req.Total)
	} else {
		end.body.Joined, err = a.runBranches(ctx, c, req, results)
	}
	if err != nil {
		if isLimit(err) {
			a.run.Cancel(err)
		}
		return callEnd{}, err
	}
	result, err := json.Marshal(map[string]any{"blocks": results})
	if len(result) > maxMessage {
		end.err = failure.New(abi.Limit, "the outputs of the nested steps of %s have %d bytes together, the limit is %d", a.address, len(result), maxMessage)
		return end, nil
	}
	end.result = result
	return end, err
}

// reportItems reports that so many items of the step have ended, at each hundredth of them.
func (a *attempt) reportItems(ended, total int64) {
	if total <= 0 || ended > 0 && ended < total && ended*100/total == (ended-1)*100/total {
		return
	}
	p := a.progress(run.OnItems, a.n)
	p.Items = &run.Items{Ended: ended, Total: total}
	a.run.Report(p)
}

// runBlock executes one nested list. The error of a failed step is in the result;
// runBlock itself returns an error only if the run or the branch ends.
func (a *attempt) runBlock(ctx context.Context, sc Scope, field string, ordinal int) (blockResult, error) {
	steps, ok := a.step.Blocks[field]
	if !ok {
		if _, known := a.branchField(field); !known {
			return blockResult{Error: failure.New(abi.BadFields, "%s: step %s has no nested steps %q", abi.FuncBlock, a.address, field)}, nil
		}
	}
	l := &List{
		svc: a.svc, run: a.run, sc: sc, steps: steps,
		path:     a.listPath(ordinal, field),
		address:  fmt.Sprintf("%s.%s.", a.address, field),
		attempts: append(append([]int(nil), a.enclosing...), a.n),
	}
	out, err := l.RunSteps(ctx)
	if err == nil {
		return blockResult{Success: true, Output: out}, nil
	}
	if endCause(ctx, err) != nil {
		return blockResult{}, err
	}
	return blockResult{Output: out, Error: failure.From(err, abi.Internal)}, nil
}

// branchField reports whether field is marked for nested steps in this step type. A
// field that is left out is an empty list.
func (a *attempt) branchField(field string) (string, bool) {
	_, marks := a.mod.Fields(a.step.Type)
	mark := marks[field]
	return mark, mark == abi.MarkSteps
}

// runBranches executes several lists in parallel, each with a copy of the scope. It
// returns the branches, in order, whose variables are merged at the end of the call.
func (a *attempt) runBranches(ctx context.Context, c *call, req blockRequest, results []blockResult) ([]int, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	limit := req.Concurrency
	if limit <= 0 || limit > len(req.Blocks) {
		limit = len(req.Blocks)
	}
	tokens := make(chan struct{}, limit)
	drained, drain := context.WithCancel(ctx) // no further block begins
	defer drain()
	scopes := make([]Scope, len(req.Blocks))
	errs := make([]error, len(req.Blocks))
	for i := range req.Blocks {
		scopes[i] = a.run.BranchScope(history.BranchKey(a.path, c.start.Block+i, append(slices.Clone(a.enclosing), a.n)))
	}
	if c.repeated && (req.Drain || req.FailFast) && a.blockFailed(c, req) {
		drain() // before a crash: what fails again at once must not race with the begin of another block
	}
	var wg sync.WaitGroup
	var ended atomic.Int64
	ended.Store(int64(c.start.Block))
	for i := range req.Blocks { // they begin in their order
		if errs[i] = a.takeToken(ctx, drained, tokens, a.listPath(c.start.Block+i, req.Blocks[i].Field)); errs[i] != nil {
			continue
		}
		wg.Go(func() {
			defer func() { <-tokens }()
			results[i], errs[i] = a.runBlock(ctx, scopes[i], req.Blocks[i].Field, c.start.Block+i)
			a.reportItems(ended.Add(1), req.Total)
			switch {
			case errs[i] == nil && results[i].Error != nil && req.FailFast:
				cancel(errSibling)
			case errs[i] == nil && results[i].Error != nil && req.Drain:
				drain()
			case isLimit(errs[i]):
				a.run.Cancel(errs[i]) // the other branches end with the run
			}
		})
	}
	wg.Wait()
	var joined []int
	for i := range req.Blocks {
		switch {
		case errors.Is(errs[i], errSibling), req.FailFast && errors.Is(errs[i], errDrained):
			results[i] = blockResult{Error: failure.New(abi.Cancelled, "branch %d was cancelled: another branch failed", i), cancelled: true}
		case errors.Is(errs[i], errDrained):
			results[i] = blockResult{Error: failure.New(abi.Cancelled, "branch %d did not begin: another branch failed", i), cancelled: true, Skipped: true}
		case errs[i] != nil:
			return nil, errs[i]
		case !req.Isolated:
			joined = append(joined, i)
		}
	}
	return joined, nil
}

// blockFailed reports whether a block of a call failed before a crash.
func (a *attempt) blockFailed(c *call, req blockRequest) bool {
	attempts := append(slices.Clone(a.enclosing), a.n)
	for i, b := range req.Blocks {
		path := a.listPath(c.start.Block+i, b.Field)
		for n := range a.step.Blocks[b.Field] {
			x := a.run.RecordedStep(path+strconv.Itoa(n), attempts)
			if x == nil || x.End == nil {
				break
			}
			if x.End.Error != nil && x.End.Skipped == "" {
				return true
			}
		}
	}
	return false
}

// errDrained is the error of a block that does not begin, because another one failed.
var errDrained = errors.New("drained")

// takeToken waits until a block may begin. One that began before a crash continues even after the failure of another,
// because its result counts.
func (a *attempt) takeToken(ctx, drained context.Context, tokens chan struct{}, path string) error {
	stop := drained.Done()
	if a.run.RecordedStep(path+"0", append(slices.Clone(a.enclosing), a.n)) != nil {
		if ctx.Err() != nil { // only what it has begun is ended, with its finally
			tokens <- struct{}{}
			return nil
		}
		stop = nil
	}
	select {
	case tokens <- struct{}{}:
		if ctx.Err() == nil && (stop == nil || drained.Err() == nil) {
			return nil
		}
		<-tokens // the end came at the same time
	case <-ctx.Done():
	case <-stop:
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errDrained
}

// listPath returns the execution path of the nested list with a number, with its last dot.
func (a *attempt) listPath(ordinal int, field string) string {
	return fmt.Sprintf("%s#%d.%s.", a.path, ordinal, field)
}
