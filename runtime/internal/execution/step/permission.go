package step

import (
	"encoding/json"

	"github.com/sentinel-runtime/sentinel/runtime/external"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// denied returns an error if the plugin's grant does not allow a host call. Calls that
// are answered from records are not checked again.
//
// Hosts and folders are checked where they are accessed, because one request may lead
// to several, for example by redirects.
func (a *attempt) denied(c *call) *abi.Error {
	use, guarded := abi.UseOf(c.function)
	if !guarded || a.mod.Trusted() {
		return nil
	}
	grant, ok := a.mod.Allowed()
	if !ok {
		return a.mod.Refusal("plugin %q has no grant any more", a.mod.Manifest().Name)
	}
	if _, ok := grant.Names(use); !ok {
		return a.mod.Refusal("plugin %q is not allowed %s (%s)", a.mod.Manifest().Name, use, c.function)
	}
	switch use {
	case abi.UseCommand:
		req, e := c.commandRequest()
		if e != nil {
			return e
		}
		return a.mod.DeniedCommand(a.svc.CommandInfo(req.Command))
	case abi.UseWatch:
		// A file is read, which is more than the output of the run's own processes.
		if req, e := watchOf(c); e != nil || req.File != nil {
			return a.mod.DeniedCommand(a.svc.CommandInfo("code/read"))
		}
	case abi.UseSpawn:
		return a.deniedSpawn(c)
	case abi.UseEmit:
		var req emitRequest
		if e := parse(c, &req); e != nil {
			return e
		}
		if !a.mod.AllowsRequested(use, req.Event) {
			return a.mod.Refusal("plugin %q is not allowed to emit %q", a.mod.Manifest().Name, req.Event)
		}
	}
	return nil
}

// deniedSpawn returns an error if the plugin may not start the sentinel that the call
// names. A definition that is written in the step's fields needs no permission; a
// stored one does.
func (a *attempt) deniedSpawn(c *call) *abi.Error {
	var req spawnRequest
	if e := parse(c, &req); e != nil {
		return e
	}
	id := req.Sentinel
	if req.Field != "" {
		if id = storedID(a.step.Fields[req.Field]); id == "" {
			return nil
		}
	}
	if id == "" || !a.mod.AllowsRequested(abi.UseSpawn, id) {
		return a.mod.Refusal("plugin %q is not allowed to start the sentinel %q", a.mod.Manifest().Name, id)
	}
	return nil
}

// storedID returns the id in a field that refers to a stored definition, "" if the
// field contains a definition.
func storedID(raw json.RawMessage) (id string) {
	if json.Unmarshal(raw, &id) == nil {
		return id
	}
	return string(sentinels.RefOf(raw))
}

// deniedModel returns an error if the plugin may not use a model. Its grant must name
// the model as requested or as resolved.
func (a *attempt) deniedModel(requested string, quote external.ModelQuote) *abi.Error {
	if a.mod.Trusted() {
		return nil
	}
	full := quote.Provider + "/" + quote.Model
	if requested != "" && a.mod.AllowsRequested(abi.UseLLM, requested) || a.mod.AllowsRequested(abi.UseLLM, full) || a.mod.AllowsRequested(abi.UseLLM, quote.Model) {
		return nil
	}
	return a.mod.Refusal("plugin %q is not allowed the model %q", a.mod.Manifest().Name, full)
}
