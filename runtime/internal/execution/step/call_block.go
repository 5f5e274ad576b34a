package step

import (
	"bytes"
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
	"github.com/sentinel-runtime/sentinel/sentinels"
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
	e := parseOutline(c, &req)
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
	for i, b := range req.Blocks {
		for name, v := range b.Vars {
			b.Vars[name] = c.outline.Insert(v)
		}
		small, large, err := a.svc.Values.KeepLarge(a.svc.Redact.Values(b.Vars))
		if err != nil {
			return err
		}
		body.Branches = append(body.Branches, small)
		if large != nil {
			if body.BranchLarge == nil {
				body.BranchLarge = make([]map[string]journal.Value, len(req.Blocks))
			}
			body.BranchLarge[i] = large
		}
	}
	return a.beginCall(ctx, c, body)
}

// doBlock executes the nested lists.
func (a *attempt) doBlock(ctx context.Context, c *call) (callEnd, error) {
	var req blockRequest // its variables are in the record
	if e := parseOutline(c, &req); e != nil {
		return callEnd{err: e}, nil
	}
	results := make([]blockResult, len(req.Blocks))
	end := callEnd{body: journal.CallEndBody{Blocks: len(req.Blocks)}}
	var err error
	if c.start.Block == 0 {
		a.reportItems(0, req.Total)
	}
	if len(req.Blocks) == 1 && !req.Isolated {
		results[0], err = a.runBlock(ctx, a.sc, req.Blocks[0].Field, c.start.Block, a.settle)
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
	result, err := encodeBlocks(results)
	if len(result) > maxMessage {
		end.err = failure.New(abi.Limit, "the outputs of the nested steps of %s have %d bytes together, the limit is %d", a.address, len(result), maxMessage)
		return end, nil
	}
	end.result = result
	return end, err
}

// encodeBlocks returns the answer of a call, as [json.Marshal] writes it.
func encodeBlocks(results []blockResult) (json.RawMessage, error) {
	size := 0
	for _, r := range results {
		size += len(r.Output) + 100
	}
	var b bytes.Buffer
	b.Grow(size)
	b.WriteString(`{"blocks":[`)
	for i, r := range results {
		output := r.Output
		r.Output = nil
		rest, err := json.Marshal(r)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		head := fmt.Sprintf(`{"success":%t`, r.Success)
		b.WriteString(head)
		if len(output) > 0 {
			b.WriteString(`,"output":`)
			appendValue(&b, output)
		}
		b.Write(rest[len(head):])
	}
	b.WriteString(`]}`)
	return b.Bytes(), nil
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
// runBlock itself returns an error only if the run or the branch ends. settle is that of the list.
func (a *attempt) runBlock(ctx context.Context, sc Scope, field string, ordinal int, settle func()) (blockResult, error) {
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
		retry:    a.retry,
		settle:   settle,
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
	failing := newFailures(a, c, req)
	if failing.certain {
		drain()
	}
	order, interrupted := a.beginOrder(c, req)
	var wg sync.WaitGroup
	var ended atomic.Int64
	ended.Store(int64(c.start.Block))
	for n, i := range order {
		if errs[i] = takeToken(ctx, drained, tokens, n < interrupted, failing.over); errs[i] != nil {
			continue
		}
		wg.Go(func() {
			defer func() { <-tokens }()
			settle := a.settle
			if own := failing.settles[i]; own != nil {
				settle = func() { own(); a.settled() }
				defer own() // after drain
			}
			results[i], errs[i] = a.runBlock(ctx, scopes[i], req.Blocks[i].Field, c.start.Block+i, settle)
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

// beginOrder returns the order in which the blocks of a call begin: those that a crash interrupted, which are so many,
// then the others. Blocks begin in their order, but the record of one may come before that of an earlier one. With
// drain all blocks up to the last one with a record count as interrupted: the caller relies on it that a skipped block
// is behind all that began, and would execute those behind it again.
func (a *attempt) beginOrder(c *call, req blockRequest) (order []int, interrupted int) {
	var gaps, others []int
	for i := range req.Blocks {
		if c.repeated && a.run.RecordedStep(a.listPath(c.start.Block+i, req.Blocks[i].Field)+"0", append(slices.Clone(a.enclosing), a.n)) != nil {
			order, gaps, others = append(order, i), append(gaps, others...), nil
		} else {
			others = append(others, i)
		}
	}
	interrupted = len(order)
	order = append(order, gaps...)
	if req.Drain {
		interrupted = len(order)
	}
	return append(order, others...), interrupted
}

// errDrained is the error of a block that does not begin, because another one failed.
var errDrained = errors.New("drained")

// takeToken waits until a block may begin, not before over is closed. One that began before a crash continues even after
// the failure of another, because its result counts.
func takeToken(ctx, drained context.Context, tokens chan struct{}, begun bool, over <-chan struct{}) error {
	stop := drained.Done()
	if begun {
		if ctx.Err() != nil { // only what it has begun is ended, with its finally
			tokens <- struct{}{}
			return nil
		}
		stop = nil
	} else {
		select {
		case <-over:
		case <-ctx.Done():
		case <-stop:
		}
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

// failures are the blocks of a call after whose failure no other block begins, and which a crash interrupted between the
// failure of a step in them and their own end. What the failure leads to takes a replay of the steps around it. Until
// that has shown whether such a block fails, no other block begins: a user who has seen the failure would see an item
// begin after it. The wait ends as soon as the block goes on in any other way: with another step, call or attempt.
type failures struct {
	certain bool          // a block has failed
	over    chan struct{} // closed when each of the other ones has failed or goes on
	left    atomic.Int32
	settles map[int]func() // by block
}

// newFailures finds the failures in a call that is repeated after a crash.
func newFailures(a *attempt, c *call, req blockRequest) *failures {
	f := &failures{over: make(chan struct{})}
	if c.repeated && (req.Drain || req.FailFast) {
		attempts := append(slices.Clone(a.enclosing), a.n)
		for i, b := range req.Blocks {
			switch x := a.failedStep(a.listPath(c.start.Block+i, b.Field), a.step.Blocks[b.Field], attempts); {
			case x == nil:
			case x.End != nil:
				f.certain = true
			default:
				if f.settles == nil {
					f.settles = map[int]func(){}
				}
				f.left.Add(1)
				f.settles[i] = sync.OnceFunc(func() {
					if f.left.Add(-1) == 0 {
						close(f.over)
					}
				})
			}
		}
	}
	if len(f.settles) == 0 {
		close(f.over)
	}
	return f
}

// failedStep returns the step of a list that has failed, or that was open when all that it waited for had failed or
// ended; nil if there is none.
func (a *attempt) failedStep(path string, steps []sentinels.Step, attempts []int) *history.Execution {
	for i := range steps {
		x := a.run.RecordedStep(path+strconv.Itoa(i), attempts)
		switch {
		case x == nil:
			return nil
		case x.End == nil:
			if x.Attempt != nil && a.failsWithin(x, &steps[i], attempts) {
				return x
			}
			return nil
		case x.End.Error != nil && x.End.Skipped == "":
			return x
		}
	}
	return nil
}

// failsWithin reports whether the newest call of an open step has executed blocks of which one failed and none
// continues, or whether its failure was recorded, and its onFailure or finally is executed.
func (a *attempt) failsWithin(x *history.Execution, s *sentinels.Step, attempts []int) bool {
	if end := x.Attempt.End(); end != nil {
		outcome, err := a.readOutcome(end.Start)
		return err == nil && outcome.Status != sentinels.StatusCompleted
	}
	n := len(x.Attempt.Calls)
	if n == 0 || x.Attempt.Calls[n-1].Start == nil || x.Attempt.Calls[n-1].Start.Function != abi.FuncBlock {
		return false
	}
	c := x.Attempt.Calls[n-1]
	if c.End != nil {
		var answer struct{ Blocks []blockResult }
		raw, err := a.svc.Values.Load(c.End.Result)
		return err == nil && json.Unmarshal(raw, &answer) == nil &&
			slices.ContainsFunc(answer.Blocks, func(r blockResult) bool { return !r.Success && !r.Skipped })
	}
	var req blockRequest
	raw, err := a.svc.Values.Load(c.Start.Request)
	if err != nil || json.Unmarshal(raw, &req) != nil {
		return false
	}
	attempts = append(slices.Clone(attempts), x.Attempt.Number)
	failed := false
	for i, b := range req.Blocks {
		path, steps := fmt.Sprintf("%s#%d.%s.", x.Path, c.Start.Block+i, b.Field), s.Blocks[b.Field]
		switch {
		case a.failedStep(path, steps, attempts) != nil:
			failed = true
		case !req.FailFast && !a.blockOver(path, steps, attempts, req.Drain):
			return false
		}
	}
	return failed
}

// blockOver reports whether each step of a list has ended, or none began and none will.
func (a *attempt) blockOver(path string, steps []sentinels.Step, attempts []int, drain bool) bool {
	for i := range steps {
		x := a.run.RecordedStep(path+strconv.Itoa(i), attempts)
		if x == nil {
			return i == 0 && drain
		}
		if x.End == nil {
			return false
		}
	}
	return true
}
