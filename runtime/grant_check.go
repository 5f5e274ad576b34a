package runtime

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/runtime/internal/pluginset"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// denied returns the error with which a host call is answered that the plugin's
// grant does not cover, nil for one that may begin. What is answered from record
// is not asked about: it was allowed when it was made.
//
// Hosts and folders are compared where they are accessed, since a request may
// lead to several, each in its own turn.
func (a *attempt) denied(c *call) *abi.Error {
	use, guarded := abi.UseOf(c.function)
	if !guarded || a.mod.Trusted() {
		return nil
	}
	grant, ok := a.mod.Allowed()
	if !ok {
		return a.mod.Refusal("plugin %q is not allowed anything any more", a.mod.Manifest().Name)
	}
	if _, ok := grant.Names(use); !ok {
		return a.mod.Refusal("plugin %q is not allowed %s (%s)", a.mod.Manifest().Name, use, c.function)
	}
	switch use {
	case abi.UseCommand:
		req, e := c.commandRead()
		if e != nil {
			return e
		}
		return deniedCommand(a.mod, a.run.rt.commandInfo(req.Command))
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

// commandInfo is what is known of a command by its name.
func (rt *Runtime) commandInfo(name string) CommandInfo {
	if rt.opt.Commands != nil {
		if info, ok := rt.opt.Commands.Lookup(name); ok {
			return info
		}
	}
	return CommandInfo{Name: name}
}

// deniedCommand returns why a plugin may not call a command, nil if it may.
func deniedCommand(m *pluginset.Module, info CommandInfo) *abi.Error {
	if m.Trusted() {
		return nil
	}
	grant, _ := m.Allowed()
	names, _ := grant.Names(abi.UseCommand)
	asked, _ := m.Requested(abi.UseCommand)
	name := m.Manifest().Name
	switch {
	case !info.namedBy(asked):
		e := m.Refusal("plugin %q does not ask for the command %q", name, info.Name)
		e.Hint = "its author has to add the command to what it asks for"
		switch {
		case info.ByName:
			e.Hint += "; no pattern matches it, it must be named"
		case info.Private:
			e.Hint += "; it is not in * nor in the pattern of a family above its own"
		}
		return e
	case !info.namedBy(names):
		return m.Refusal("plugin %q is not allowed the command %q", name, info.Name)
	}
	return nil
}

// namedBy reports whether one of the patterns names the command: its own name;
// unless it is ByName, the family it is in with "/*"; and for one that is not
// private, a family above and "*".
func (info CommandInfo) namedBy(patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		family, ok := strings.CutSuffix(pattern, "/*")
		switch {
		case pattern == info.Name:
			return true
		case info.ByName:
			return false
		case pattern == "*":
			return !info.Private
		case !ok || family == "" || !strings.HasPrefix(info.Name, family+"/"):
			return false
		}
		return !info.Private || path.Dir(info.Name) == family
	})
}

// deniedSpawn returns why the plugin may not start what it names: a definition in
// the step's own fields needs no name, a stored one does, however it is named.
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

// storedID is the id in a field that refers to a stored definition, "" if the
// definition is written there.
func storedID(raw json.RawMessage) (id string) {
	var ref struct {
		Ref string `json:"$ref"`
	}
	switch {
	case json.Unmarshal(raw, &id) == nil:
		return id
	case json.Unmarshal(raw, &ref) == nil:
		return ref.Ref
	}
	return ""
}

// deniedModel returns why the plugin may not ask a model: the name in the request
// or the model that it resolves to has to be allowed.
func (a *attempt) deniedModel(requested string, quote ModelQuote) *abi.Error {
	if a.mod.Trusted() {
		return nil
	}
	full := quote.Provider + "/" + quote.Model
	if requested != "" && a.mod.AllowsRequested(abi.UseLLM, requested) || a.mod.AllowsRequested(abi.UseLLM, full) || a.mod.AllowsRequested(abi.UseLLM, quote.Model) {
		return nil
	}
	return a.mod.Refusal("plugin %q is not allowed the model %q", a.mod.Manifest().Name, full)
}
