package step

import (
	"context"

	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// startFile begins a call of ABI clause A6.16. Every operation may be repeated, so a
// crash leaves none in doubt. Writes start when their start record is durable, so that
// the journal contains every write.
func (a *attempt) startFile(ctx context.Context, c *call) error {
	var req struct {
		Folder string `json:"folder"`
		Op     string `json:"op"`
		Path   string `json:"path"`
	}
	if err := strictjson.DecodeOpen(c.request, &req, requestLimits); err != nil {
		a.complete(c, callEnd{err: failure.New(abi.BadFields, "%s: %v", abi.FuncFile, err)})
		return nil
	}
	if a.svc.Folders == nil {
		a.complete(c, callEnd{err: failure.New(abi.Denied, "%s: this host provides no folders", abi.FuncFile)})
		return nil
	}
	effect := req.Op == "write" || req.Op == "remove"
	return a.beginCall(ctx, c, journal.CallStartBody{Effect: effect, Safe: true, Label: req.Op + " " + req.Folder + ":" + req.Path})
}

// doFile does the file operation.
func (a *attempt) doFile(ctx context.Context, c *call) (callEnd, error) {
	return a.callExternal(ctx, c, a.svc.Folders)
}
