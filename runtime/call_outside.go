package runtime

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// startHTTP is clause A6.13.
func (a *attempt) startHTTP(ctx context.Context, c *call) error {
	var req struct {
		Method string `json:"method"`
		URL    string `json:"url"`
	}
	if err := strictjson.DecodeOpen(c.request, &req, requestLimits); err != nil {
		a.complete(c, callEnd{err: errf(abi.BadFields, "%s: %v", abi.FuncHTTP, err)})
		return nil
	}
	if a.run.rt.opt.HTTP == nil {
		a.complete(c, callEnd{err: errf(abi.Denied, "%s: this program grants no plugin the network", abi.FuncHTTP)})
		return nil
	}
	safe := req.Method == "" || req.Method == http.MethodGet || req.Method == http.MethodHead
	durable, err := a.beginCall(c, journal.CallStartBody{Effect: !safe, Safe: safe, Label: req.Method + " " + req.URL})
	if err != nil {
		return err
	}
	if safe {
		durable = nil
	}
	a.perform(ctx, c, durable, a.doHTTP)
	return nil
}

func (a *attempt) doHTTP(ctx context.Context, c *call) (callEnd, error) {
	return a.doOutside(ctx, c, a.run.rt.opt.HTTP)
}

// startFile is clause A6.16. Every operation may be made again, so a crash
// leaves none in doubt; what writes starts when its start is durable, so that
// the journal knows of everything that was written.
func (a *attempt) startFile(ctx context.Context, c *call) error {
	var req struct {
		Folder string `json:"folder"`
		Op     string `json:"op"`
		Path   string `json:"path"`
	}
	if err := strictjson.DecodeOpen(c.request, &req, requestLimits); err != nil {
		a.complete(c, callEnd{err: errf(abi.BadFields, "%s: %v", abi.FuncFile, err)})
		return nil
	}
	if a.run.rt.opt.Folders == nil {
		a.complete(c, callEnd{err: errf(abi.Denied, "%s: this program grants no plugin a folder", abi.FuncFile)})
		return nil
	}
	effect := req.Op == "write" || req.Op == "remove"
	durable, err := a.beginCall(c, journal.CallStartBody{Effect: effect, Safe: true, Label: req.Op + " " + req.Folder + ":" + req.Path})
	if err != nil {
		return err
	}
	if !effect {
		durable = nil
	}
	a.perform(ctx, c, durable, a.doFile)
	return nil
}

func (a *attempt) doFile(ctx context.Context, c *call) (callEnd, error) {
	return a.doOutside(ctx, c, a.run.rt.opt.Folders)
}

// doOutside makes a call that the plugin makes by itself.
func (a *attempt) doOutside(ctx context.Context, c *call, outside interface {
	Do(ctx context.Context, call PluginCall) (json.RawMessage, error)
}) (callEnd, error) {
	if err := a.run.enter(ctx); err != nil {
		return callEnd{}, err
	}
	defer a.run.leave()
	grant, ok := a.mod.Allowed()
	if !ok { // taken back while the call waited for its turn
		return callEnd{err: a.denied(c)}, nil
	}
	var out json.RawMessage
	err := a.waitForFiles(ctx, c.function, func() (err error) {
		out, err = outside.Do(ctx, PluginCall{
			Plugin: a.mod.Manifest().Name, Run: a.run.id, Workspace: a.run.begin.Workspace, Key: a.callKey(c),
			Grant: grant, Request: c.request,
		})
		return err
	})
	if err != nil && ctx.Err() != nil {
		return callEnd{}, err
	}
	return a.commandEnd(out, err), nil
}
