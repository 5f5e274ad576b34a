package runtime

import (
	"context"
	"encoding/json"

	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// restoreCalls takes up the calls of an interrupted attempt.
func (a *attempt) restoreCalls(past *attemptHistory) error {
	a.calls, a.talks = map[int]*call{}, map[string]*conversation{}
	if past.checkpoint != nil {
		a.checkpoint = past.checkpoint
		state, err := a.run.rt.load(past.checkpoint.State)
		if err != nil {
			return err
		}
		a.state, a.block = state, past.checkpoint.Block
	}
	for _, seq := range past.order {
		h := past.calls[seq]
		c, result, err := a.restoreCall(seq, h)
		if err != nil {
			return err
		}
		if h.end != nil && h.end.Error == nil && c.function == abi.FuncLLM {
			if err := a.rebuildTalks(c, result); err != nil {
				return err
			}
		}
		if h.start != nil && h.start.Function == abi.FuncBlock {
			a.block = max(a.block, h.start.Block+blocksOf(c))
		}
		if a.checkpoint != nil && seq <= a.checkpoint.Seq {
			continue
		}
		a.calls[seq] = c
		a.callBytes += int64(len(c.request) + len(result))
	}
	return nil
}

func (a *attempt) restoreCall(seq int, h *callHistory) (*call, json.RawMessage, error) {
	c := &call{seq: seq, start: h.start, done: make(chan struct{})}
	kept := journal.Value{}
	switch {
	case h.start != nil:
		c.function, c.hash, kept = h.start.Function, h.start.Hash, h.start.Request
	case h.end != nil:
		c.function, c.hash, kept = h.end.Function, h.end.Hash, h.end.Request
	}
	var err error
	if c.request, err = a.run.rt.load(kept); err != nil {
		return nil, nil, err
	}
	if h.end == nil {
		return c, nil, nil
	}
	result, err := a.run.rt.load(h.end.Result)
	if err != nil {
		return nil, nil, err
	}
	c.answer(result, h.end.Error, microTime(h.endTime))
	return c, result, nil
}

func blocksOf(c *call) int {
	var req blockRequest
	if json.Unmarshal(c.request, &req) != nil {
		return 1
	}
	return len(req.Blocks)
}

// resumeCall takes up the work behind a call that a crash cut off.
func (a *attempt) resumeCall(ctx context.Context, c *call) error {
	switch c.function {
	case abi.FuncCommand:
		if !c.start.Effect {
			a.perform(ctx, c, nil, a.guarded(a.doCommand))
			return nil
		}
		a.doubt(ctx, c, a.guarded(a.doCommand))
	case abi.FuncLLM:
		// The server may have counted the turn, so its worst case is spent,
		// whatever is decided; making it again books it once more.
		worst := *c.start.Reserved
		a.run.ledger.charge(a.run.id, worst)
		a.run.mu.Lock()
		a.run.usage.Add(worst)
		a.run.mu.Unlock()
		a.doubt(ctx, c, a.guarded(func(ctx context.Context, c *call) (callEnd, error) {
			a.run.ledger.rebook(a.run, worst)
			return a.doLLM(ctx, c)
		}))
	case abi.FuncWatch:
		a.perform(ctx, c, nil, a.guarded(a.doWatch))
	case abi.FuncBlock:
		c.resumed = true
		a.perform(ctx, c, nil, a.doBlock)
	case abi.FuncWait:
		c.setTime()
		a.perform(ctx, c, nil, a.doWait)
	case abi.FuncHTTP:
		if !c.start.Effect {
			a.perform(ctx, c, nil, a.guarded(a.doHTTP))
			return nil
		}
		a.doubt(ctx, c, a.guarded(a.doHTTP))
	case abi.FuncFile:
		a.perform(ctx, c, nil, a.guarded(a.doFile))
	default:
		return errf(abi.Internal, "call %d of step %s, %s, has no end and cannot be taken up", c.seq, a.address, c.function)
	}
	return nil
}
