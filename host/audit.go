package host

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/audit"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/principal"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// record puts a call that changes something, or was denied, into the audit log. Calls of
// steps and models are in the trace of their run; those that change sentinels, plugins and
// tickets are in both.
func (h *Host) record(ctx context.Context, call *command.Call, err error) {
	c, ok := h.registry.Lookup(call.Command)
	if !ok || c.ReadOnly() || info(c).OnlyReads(call.Params) {
		return
	}
	inRun := call.By == command.ByStep || call.By == command.ByModel
	family, _, _ := strings.Cut(c.Name, "/")
	if inRun && !slices.Contains([]string{"sentinel", "plugin", "ticket"}, family) {
		return
	}
	e := audit.Entry{
		Level: "info", Category: audit.Action, Event: c.Name, Actor: call.Who(), Outcome: "ok",
		Details: call.Params, Run: string(call.Run), Step: call.Path,
	}
	if !inRun {
		by := principal.From(ctx).Process
		e.PID, e.Program = by.PID, by.Program
	}
	switch {
	case abi.CodeOf(err) == abi.Denied, strings.HasPrefix(c.Name, "plugin/"):
		e.Category = audit.Security
	case c.Effect == command.Decides:
		e.Category = audit.Decision
	case call.By != command.ByUser:
		e.Category = audit.Agent
	}
	if err == nil {
		h.audit.Write(e)
		if h.opt.Recorded != nil {
			h.opt.Recorded(e)
		}
		return
	}
	e.Level, e.Outcome, e.Error = "warn", string(abi.CodeOf(err)), err.Error()
	if call.By == command.ByUser {
		h.audit.Write(e)
		return
	}
	h.audit.WriteFailure(e)
}

// RecordRemovedPlugin puts into the audit log that the file of a plugin was removed.
func (h *Host) RecordRemovedPlugin(name, digest, file string) {
	if in, err := filepath.Rel(filepath.Join(h.dir, "plugins"), file); err == nil {
		file = filepath.ToSlash(in) // as when it was dropped
	}
	h.recordPlugin(plugin.Info{Name: name, Digest: digest, Source: file, State: "removed"})
}

// recordPlugin puts a plugin into the audit log whose file was dropped, replaced or removed.
func (h *Host) recordPlugin(p plugin.Info) {
	if p.Trusted {
		return
	}
	e := audit.Entry{Level: "info", Category: audit.Security, Event: "plugin/file", Actor: "file", Outcome: "ok"}
	if p.Problem != "" || p.Refused != "" {
		e.Level, e.Outcome, e.Error = "warn", string(abi.Denied), cmp.Or(p.Problem, p.Refused)
	}
	e.Details, _ = json.Marshal(map[string]string{"name": p.Name, "version": p.Version, "digest": p.Digest, "file": p.Source, "state": string(p.State)}) // texts are valid JSON
	h.audit.Write(e)
}

// observePlugin is [runtime.Observer].Plugin.
func (h *Host) observePlugin(p plugin.Info) {
	h.recordPlugin(p)
	if h.opt.Observer.Plugin != nil {
		h.opt.Observer.Plugin(p)
	}
}

// operatorEvents begins the names of the events by which a plan is followed, see FORMAT F14.9.
const operatorEvents = "operator:"

// lookBack is how many events of one name are searched for that of a step that has just ended.
const lookBack = 50

// recordOperator puts an event of an operator into the audit log, with its data: what was planned
// after which failure, and what of it was done.
func (h *Host) recordOperator(p runtime.Progress) {
	if p.Event != runtime.OnStepEnd || p.Type != "emit" || !bytes.Contains(p.Output, []byte(`"`+operatorEvents)) {
		return
	}
	var out struct{ ID, Event string }
	if json.Unmarshal(p.Output, &out) != nil || !strings.HasPrefix(out.Event, operatorEvents) {
		return
	}
	list, err := h.rt.Events(out.Event, lookBack)
	if err != nil {
		h.opt.Logger.Warn("an event of an operator cannot be read, and is in the audit log without its data", "event", out.Event, "error", err)
	}
	by := command.Call{By: command.ByStep, Sentinel: p.Sentinel}
	e := audit.Entry{Level: "info", Category: audit.Agent, Event: out.Event, Actor: by.Who(), Outcome: "ok", Run: string(p.Run), Step: p.Path}
	if i := slices.IndexFunc(list, func(e sentinels.Event) bool { return e.ID == out.ID }); i >= 0 {
		e.Details = list[i].Data
	}
	h.audit.Write(e)
}

// RecordDenial puts a request into the audit log that was refused before it came to a
// command. remote is the client's IP address, empty on the control socket.
func (h *Host) RecordDenial(actor, event, remote string, by principal.Process, err error) {
	e := audit.Entry{
		Level: "warn", Category: audit.Security, Event: event, Actor: actor, Outcome: string(abi.CodeOf(err)), Error: err.Error(),
		PID: by.PID, Program: by.Program,
	}
	if remote != "" {
		e.Details, _ = json.Marshal(map[string]string{"remote": remote}) // a text is valid JSON
	}
	h.audit.WriteFailure(e)
}

// call calls a command and records it.
func (h *Host) call(ctx context.Context, call *command.Call) (json.RawMessage, error) {
	out, err := h.registry.Call(ctx, call)
	h.record(ctx, call, err)
	return out, err
}
