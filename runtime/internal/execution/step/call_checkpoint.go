package step

import (
	"encoding/json"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
)

// callCheckpoint handles a call of ABI clause A6.12: calls before a checkpoint are not
// replayed any more.
func (a *attempt) callCheckpoint(c *call) (wasm.Reply, error) {
	var req struct {
		State json.RawMessage `json:"state"`
	}
	now := time.Now()
	if e := parseOutline(c, &req); e != nil {
		c.answer(nil, e, now)
		return c.reply(), nil
	}
	req.State = c.outline.Insert(req.State)
	state, err := a.svc.Values.Redacted(req.State)
	if err != nil {
		return wasm.Reply{}, err
	}
	a.mu.Lock()
	body := &journal.CheckpointBody{Seq: c.seq, Hash: c.hash, State: state, Block: a.block, Logs: a.logs, LogBytes: a.used.logs, Stored: a.used.stored}
	a.checkpoint, a.state = body, req.State
	clear(a.calls)
	a.callBytes = 0
	a.mu.Unlock()
	a.write(true, a.n, &journal.Record{Kind: journal.Checkpoint, Checkpoint: body})
	c.answer(json.RawMessage("{}"), nil, now)
	return c.reply(), nil
}
