package step

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

type emitRequest struct {
	Event string          `json:"event"`
	Data  json.RawMessage `json:"data"`
}

// callEmit handles a call of ABI clause A6.10. The event and the call's end are one
// commit.
func (a *attempt) callEmit(_ context.Context, c *call) error {
	var req emitRequest
	if e := parse(c, &req); e != nil {
		a.complete(c, callEnd{err: e})
		return nil
	}
	if problem, hint := sentinels.CheckEventName(req.Event); problem != "" {
		e := &abi.Error{Code: abi.BadFields, Permanent: true, Field: "event", Message: "emit: " + problem, Hint: hint}
		a.complete(c, callEnd{err: e})
		return nil
	}
	if err := a.svc.Events.CheckName(req.Event); err != nil {
		a.complete(c, callEnd{err: failure.From(err, abi.BadFields)})
		return nil
	}
	chain := a.run.Chain()
	if chain.Hops > a.svc.Limits.Hops {
		a.complete(c, callEnd{err: chain.Refuse(req.Event, a.svc.Limits.Hops)})
		return nil
	}
	e := sentinels.Event{
		ID: a.callKey(c), Name: req.Event, Source: "sentinel/" + string(a.run.Start().Sentinel),
		Time: time.Now().UTC(), Data: req.Data, Hops: chain.Hops, Path: chain.Path, By: a.run.EventsBy(),
	}
	count := a.run.Emission("")
	err := a.svc.EventLog(e.Name).CheckRate(e)
	if err == nil {
		err = count.Add(e)
	}
	if err != nil {
		a.complete(c, callEnd{err: failure.From(err, abi.Limit)})
		return nil
	}
	result, err := json.Marshal(map[string]string{"id": e.ID})
	if err != nil {
		return err
	}
	return a.svc.EventLog(e.Name).Append(e, func(puts ...store.Put) *store.Ticket {
		return a.complete(c, callEnd{result: result, puts: puts, body: journal.CallEndBody{Label: req.Event, Emitted: count.Total()}})
	})
}
