package step

import (
	"encoding/json"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// restoreCalls restores the checkpoint and the host calls of an interrupted attempt.
func (a *attempt) restoreCalls(past *history.Attempt) error {
	a.calls, a.conversations = map[int]*call{}, map[string]*conversation{}
	if past.Checkpoint != nil {
		a.checkpoint = past.Checkpoint
		state, err := a.svc.Values.Load(past.Checkpoint.State)
		if err != nil {
			return err
		}
		a.state, a.block = state, past.Checkpoint.Block
	}
	for _, h := range past.Calls {
		seq := h.Seq
		c, result, err := a.restoreCall(h)
		if err != nil {
			return err
		}
		if h.End != nil && h.End.Error == nil && c.function == abi.FuncLLM {
			if err := a.rebuildConversation(c, h.End, result); err != nil {
				return err
			}
		}
		if h.Start != nil && h.Start.Function == abi.FuncBlock {
			a.block = max(a.block, h.Start.Block+blockCount(c))
		}
		if a.checkpoint != nil && seq <= a.checkpoint.Seq {
			continue
		}
		a.calls[seq] = c
		a.callBytes += int64(len(c.request) + len(result))
	}
	return nil
}

// restoreCall returns a recorded call with its result, nil if it has none.
func (a *attempt) restoreCall(h *history.Call) (*call, json.RawMessage, error) {
	c := &call{seq: h.Seq, start: h.Start, done: make(chan struct{})}
	kept := journal.Value{}
	switch {
	case h.Start != nil:
		c.function, c.hash, kept = h.Start.Function, h.Start.Hash, h.Start.Request
	case h.End != nil:
		c.function, c.hash, kept = h.End.Function, h.End.Hash, h.End.Request
	}
	var err error
	if c.request, err = a.svc.Values.Load(kept); err != nil {
		return nil, nil, err
	}
	if h.End == nil {
		return c, nil, nil
	}
	result, err := a.svc.Values.Load(h.End.Result)
	if err != nil {
		return nil, nil, err
	}
	c.answer(result, h.End.Error, time.UnixMicro(h.EndTime))
	return c, result, nil
}

// blockCount returns the number of nested lists of a block call.
func blockCount(c *call) int {
	var req blockRequest
	if strictjson.DecodeOpen(c.request, &req, requestLimits) != nil {
		return 1
	}
	return len(req.Blocks)
}
