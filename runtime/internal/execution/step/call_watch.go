package step

import (
	"context"
	"errors"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/external"
	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// watchRequest is what the engine reads of a request; the host reads all of it.
type watchRequest struct {
	File      *string `json:"file"`
	TimeoutMs int64   `json:"timeoutMs"`
}

// watchOf reads the request of a watch.
func watchOf(c *call) (req watchRequest, e *abi.Error) {
	if err := strictjson.DecodeOpen(c.request, &req, requestLimits); err != nil {
		return req, failure.New(abi.BadFields, "%s: %v", abi.FuncWatch, err)
	}
	if req.TimeoutMs < 0 {
		return req, failure.New(abi.BadFields, "%s: negative timeoutMs", abi.FuncWatch)
	}
	return req, nil
}

// startWatch begins a call of ABI clause A6.5: it watches a background process, or a
// file. The position at which a watch of a file begins is part of the call's start, so
// that the call finds the same lines after a crash.
func (a *attempt) startWatch(ctx context.Context, c *call) error {
	req, e := watchOf(c)
	if e == nil && a.svc.Executions == nil {
		e = failure.New(abi.Unavailable, "%s: this host provides no processes", abi.FuncWatch)
	}
	if e != nil {
		a.complete(c, callEnd{err: e})
		return nil
	}
	body := journal.CallStartBody{Safe: true}
	if req.TimeoutMs > 0 {
		body.Due = a.svc.Calendar.Now().Add(time.Duration(req.TimeoutMs) * time.Millisecond).UnixMicro()
	}
	if req.File != nil {
		position, err := a.svc.Executions.FileStart(ctx, a.fileWatch(c))
		if err != nil {
			a.complete(c, callEnd{err: failure.From(err, abi.Internal)})
			return nil
		}
		body.Position, body.Label = position, *req.File
	}
	return a.beginCall(ctx, c, body)
}

// fileWatch is a call as the host reads it.
func (a *attempt) fileWatch(c *call) external.FileWatch {
	return external.FileWatch{Run: a.run.ID(), Workspace: a.run.Start().Workspace, Within: a.run.Within(), Request: c.request}
}

// doWatch waits for the process or the file. Of a process, the time limit is an error; of
// a file it is a result, because a file has no end.
func (a *attempt) doWatch(ctx context.Context, c *call) (callEnd, error) {
	req, e := watchOf(c)
	if e != nil {
		return callEnd{err: e}, nil
	}
	limited, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if c.start.Due != 0 {
		t := a.svc.Calendar.After(time.UnixMicro(c.start.Due), func() { cancel(errDue) })
		defer t.Stop()
	}
	if req.File != nil {
		w := a.fileWatch(c)
		w.Position, w.Due = c.start.Position, limited.Done()
		out, err := a.svc.Executions.WatchFile(ctx, w)
		if err != nil && ctx.Err() != nil {
			return callEnd{}, err
		}
		return a.commandEnd(out, err), nil
	}
	out, err := a.svc.Executions.Watch(limited, a.run.ID(), c.request)
	switch {
	case err != nil && ctx.Err() != nil:
		return callEnd{}, err
	case err != nil && errors.Is(context.Cause(limited), errDue):
		return callEnd{err: failure.New(abi.Timeout, "watch: time limit of %s reached", time.Duration(req.TimeoutMs)*time.Millisecond)}, nil
	}
	return a.commandEnd(out, err), nil
}
