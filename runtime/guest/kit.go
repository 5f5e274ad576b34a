package guest

import (
	"context"
	"encoding/json"

	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/abitest"
)

// Kit is the adapter of a host for the conformance kit of the ABI. The caller closes the
// host.
func Kit(host *Host, opt LoadOptions) abitest.Host { return kitHost{host, opt} }

type kitHost struct {
	host *Host
	opt  LoadOptions
}

func (h kitHost) Load(ctx context.Context, module []byte) (abitest.Guest, error) {
	m, err := h.host.Load(ctx, module, h.opt)
	if err != nil {
		return nil, err
	}
	return kitGuest{m}, nil
}

type kitGuest struct{ module *Module }

// Describe returns the manifest as the host has read it, so that the kit finds keys that
// the host does not read.
func (g kitGuest) Describe(context.Context) ([]byte, error) { return json.Marshal(g.module.Manifest()) }

func (g kitGuest) Run(ctx context.Context, inv abitest.Invocation) (abitest.Result, error) {
	in := Invocation{
		Input: inv.Input, Seed: inv.Seed, ClockBase: inv.Clock, Compute: inv.Compute,
		Limits: Limits{MemoryBytes: inv.MemoryBytes, OutputBytes: inv.OutputBytes, LogBytes: inv.LogBytes, MessageBytes: inv.MessageBytes},
	}
	if inv.Call != nil {
		in.Call = func(ctx context.Context, function string, request []byte) (wasm.Reply, error) {
			reply, err := inv.Call(ctx, function, request)
			return Reply{Body: reply.Body, Now: reply.Now}, err
		}
	}
	result, err := g.module.Run(ctx, in)
	return abitest.Result{Output: result.Output, Stderr: result.Stderr}, err
}

func (g kitGuest) Validate(ctx context.Context, input []byte) ([]byte, error) {
	var in struct {
		Type   string          `json:"type"`
		Fields json.RawMessage `json:"fields"`
	}
	if err := json.Unmarshal(input, &in); err != nil {
		return nil, abi.New(abi.BadFields, "validate: "+err.Error())
	}
	problems, err := g.module.Validate(ctx, in.Type, in.Fields)
	if err != nil {
		return nil, err
	}
	if problems == nil {
		problems = []Problem{}
	}
	return json.Marshal(map[string]any{"problems": problems})
}

func (g kitGuest) Close() error {
	g.module.Release()
	return nil
}
