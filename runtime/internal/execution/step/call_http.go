package step

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/sentinel-runtime/sentinel/runtime/external"
	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// startHTTP begins a call of ABI clause A6.13, an HTTP request.
func (a *attempt) startHTTP(ctx context.Context, c *call) error {
	var req struct {
		Method string `json:"method"`
		URL    string `json:"url"`
	}
	if err := strictjson.DecodeOpen(c.request, &req, requestLimits); err != nil {
		a.complete(c, callEnd{err: failure.New(abi.BadFields, "%s: %v", abi.FuncHTTP, err)})
		return nil
	}
	if a.svc.HTTP == nil {
		a.complete(c, callEnd{err: failure.New(abi.Denied, "%s: this host provides no HTTP", abi.FuncHTTP)})
		return nil
	}
	safe := req.Method == "" || req.Method == http.MethodGet || req.Method == http.MethodHead
	return a.beginCall(ctx, c, journal.CallStartBody{Effect: !safe, Safe: safe, Label: req.Method + " " + req.URL})
}

// doHTTP makes the request.
func (a *attempt) doHTTP(ctx context.Context, c *call) (callEnd, error) {
	return a.callExternal(ctx, c, a.svc.HTTP)
}

// callExternal makes a request of the plugin itself, rather than of a command, within
// its grant.
func (a *attempt) callExternal(ctx context.Context, c *call, service interface {
	Do(ctx context.Context, call external.PluginCall) (json.RawMessage, error)
}) (callEnd, error) {
	if err := a.run.Enter(ctx); err != nil {
		return callEnd{}, err
	}
	defer a.run.Leave()
	if within := a.run.Within(); within != nil && !slices.Contains(within, external.TypeEntry(a.step.Type)) {
		return callEnd{err: &abi.Error{
			Code: abi.Denied, Permanent: true,
			Message: fmt.Sprintf("%s: the definition of this run comes from a model or an agent that may not use what step type %q is granted", c.function, a.step.Type),
			Hint: "if the definition is stored, `sentinel inbox` shows it to a person, who may accept it with `sentinel accept`; " +
				"if it was the value of a variable, use the step type in the definition that starts the run",
		}}, nil
	}
	grant, ok := a.mod.Allowed()
	if !ok { // the grant was revoked while the call waited for a slot
		return callEnd{err: a.denied(c)}, nil
	}
	var out json.RawMessage
	err := a.waitForFiles(ctx, c.function, func() (err error) {
		out, err = service.Do(ctx, external.PluginCall{
			Plugin: a.mod.Manifest().Name, Run: a.run.ID(), Workspace: a.run.Start().Workspace, Within: a.run.Within(), Key: a.callKey(c),
			Grant: grant, Request: c.request,
		})
		return err
	})
	if err != nil && ctx.Err() != nil {
		return callEnd{}, err
	}
	return a.commandEnd(out, err), nil
}
