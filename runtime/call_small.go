package runtime

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// requestLimits are clause A6.1. A request is bounded by its bytes, so keys and
// strings need no smaller bound of their own.
var requestLimits = strictjson.Limits{Bytes: maxMessage, Depth: 256, Keys: maxMessage, StringBytes: maxMessage}

// parse reads a request strictly: an unknown key is an error, so that a misspelt
// option of a plugin is not ignored.
func parse(c *call, into any) *abi.Error {
	if err := strictjson.Decode(c.request, into, requestLimits); err != nil {
		return errf(abi.BadFields, "%s: %v", c.function, err)
	}
	return nil
}

// callEval is clause A6.6.
func (a *attempt) callEval(ctx context.Context, c *call) (callEnd, error) {
	var req struct {
		Expression string                     `json:"expression"`
		Vars       map[string]json.RawMessage `json:"vars"`
	}
	if e := parse(c, &req); e != nil {
		return callEnd{err: e}, nil
	}
	outer := a.run.conditionVars(a.sc, a.retry)
	v, err := a.run.rt.cond.Eval(ctx, req.Expression, func(name string) (json.RawMessage, bool) {
		if v, ok := req.Vars[name]; ok {
			return v, true
		}
		return outer(name)
	})
	if err != nil {
		if over(ctx) {
			return callEnd{}, context.Cause(ctx)
		}
		return callEnd{err: asError(err, abi.Plugin)}, nil
	}
	return reply(struct {
		Value  json.RawMessage `json:"value,omitempty"`
		Truthy bool            `json:"truthy"`
	}{v.JSON, v.Truthy})
}

// callVar is clause A6.7.
func (a *attempt) callVar(_ context.Context, c *call) (callEnd, error) {
	var req struct {
		Get string                     `json:"get"`
		Set map[string]json.RawMessage `json:"set"`
	}
	if e := parse(c, &req); e != nil {
		return callEnd{err: e}, nil
	}
	if req.Set != nil {
		size := a.sc.size()
		for name, v := range req.Set {
			if contains(sentinels.Reserved, name) {
				return callEnd{err: errf(abi.BadFields, "variable %q is reserved", name)}, nil
			}
			req.Set[name] = journal.Compact(v)
			if size += int64(len(v)); size > a.run.memoryLimit() {
				return callEnd{err: errf(abi.Limit, "maxMemoryMb: variables would pass the run's limit of %d bytes", a.run.memoryLimit())}, nil
			}
		}
		end, err := reply(struct{}{})
		end.body.Sets = req.Set
		return end, err
	}
	name, path := splitName(req.Get)
	v, ok := a.run.lookup(a.sc, a.retry)(name)
	if ok && path != "" {
		v, ok = sentinels.Path(v, path)
	}
	if !ok {
		v = nil
	}
	return reply(struct {
		Value json.RawMessage `json:"value,omitempty"`
		Found bool            `json:"found"`
	}{v, ok})
}

// splitName cuts "a.b[0]" behind its first name.
func splitName(s string) (name, path string) {
	for i, r := range s {
		if r == '.' {
			return s[:i], s[i+1:]
		}
		if r == '[' {
			return s[:i], s[i:]
		}
	}
	return s, ""
}

// callNow is clause A6.15.
func (a *attempt) callNow(context.Context, *call) (callEnd, error) {
	now := time.Now().UTC()
	return reply(struct {
		UnixMs int64  `json:"unixMs"`
		ISO    string `json:"iso"`
	}{now.UnixMilli(), now.Format("2006-01-02T15:04:05.000Z")})
}

// callLog is clause A6.14.
func (a *attempt) callLog(request []byte) wasm.Reply {
	var req struct {
		Level   string `json:"level"`
		Message string `json:"message"`
	}
	reply := wasm.Reply{Body: []byte(`{"ok":{}}`)}
	if err := strictjson.Decode(request, &req, requestLimits); err != nil {
		c := &call{done: make(chan struct{})}
		c.answer(nil, errf(abi.BadFields, "%s: %v", abi.FuncLog, err), time.Time{})
		return c.reply()
	}
	a.mu.Lock()
	a.guestLogs++
	seen := a.guestLogs <= a.logs
	if !seen {
		a.logs = a.guestLogs
	}
	a.mu.Unlock()
	if !seen {
		a.log(req.Level, req.Message)
	}
	return reply
}

type emitRequest struct {
	Event string          `json:"event"`
	Data  json.RawMessage `json:"data"`
}

// callEmit is clause A6.10. The event and the call's end are one commit.
func (a *attempt) callEmit(c *call) error {
	var req emitRequest
	if e := parse(c, &req); e != nil {
		a.complete(c, callEnd{err: e})
		return nil
	}
	chain := a.run.chain()
	if chain.hops > a.run.rt.limits.Hops {
		a.complete(c, callEnd{err: chain.refuse(req.Event, a.run.rt.limits.Hops)})
		return nil
	}
	e := sentinels.Event{
		ID: a.callKey(c), Name: req.Event, Source: "sentinel/" + string(a.run.begin.Sentinel),
		Time: time.Now().UTC(), Data: req.Data, Hops: chain.hops, Path: chain.path,
	}
	count := &emission{run: a.run}
	if err := count.add(e); err != nil {
		a.complete(c, callEnd{err: asError(err, abi.Limit)})
		return nil
	}
	result, err := json.Marshal(map[string]string{"id": e.ID})
	if err != nil {
		return err
	}
	_, err = a.run.rt.events.publish(e, func(puts ...store.Put) *store.Ticket {
		return a.complete(c, callEnd{result: result, puts: puts, body: journal.CallEndBody{Label: req.Event, Emitted: count.total()}})
	})
	return err
}

// callCheckpoint is clause A6.12: what came before is never replayed again.
func (a *attempt) callCheckpoint(c *call) (wasm.Reply, error) {
	var req struct {
		State json.RawMessage `json:"state"`
	}
	now := time.Now()
	if e := parse(c, &req); e != nil {
		c.answer(nil, e, now)
		return c.reply(), nil
	}
	state, err := a.run.rt.value(req.State)
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

// callKey is the idempotency key of a call, equal for all attempts of the step.
func (a *attempt) callKey(c *call) string { return digest(a.key(), strconv.Itoa(c.seq)) }

func reply(v any) (callEnd, error) {
	b, err := json.Marshal(v)
	return callEnd{result: b}, err
}
