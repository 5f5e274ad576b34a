package host

import (
	"context"
	"encoding/json"
	"path/filepath"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/command/rag"
	"github.com/sentinel-runtime/sentinel/host/command/shell"
	"github.com/sentinel-runtime/sentinel/host/config"
	"github.com/sentinel-runtime/sentinel/host/foldersync"
	"github.com/sentinel-runtime/sentinel/host/plugin/egress"
	"github.com/sentinel-runtime/sentinel/host/plugin/files"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// commandBridge is the registry as the engine sees it.
type commandBridge Host

var _ runtime.Commands = (*commandBridge)(nil)

func (c *commandBridge) Lookup(name string) (runtime.CommandInfo, bool) {
	if c.registry == nil {
		return runtime.CommandInfo{}, false // a definition is checked while the host opens
	}
	cmd, ok := c.registry.Lookup(name)
	return info(cmd), ok
}

func (c *commandBridge) Tools(patterns []string) []runtime.CommandInfo {
	var out []runtime.CommandInfo
	for _, cmd := range c.registry.Offer(patterns) {
		out = append(out, info(cmd))
	}
	return out
}

func info(c command.Command) runtime.CommandInfo {
	return runtime.CommandInfo{
		Name: c.Name, Summary: c.Summary, Input: c.Input(), ReadOnly: c.ReadOnly(), Idempotent: c.Idempotent, Reads: c.Reads, Repeatable: c.Repeatable,
		AsRun: c.AsRun, InStore: c.InStore, Shell: c.Shell, Raw: c.Raw, Private: c.Private, ByName: c.ByName,
		Defines: c.Defines, Began: c.Began,
	}
}

func (c *commandBridge) Call(ctx context.Context, call runtime.CommandCall) (json.RawMessage, error) {
	by := command.ByStep
	tools := call.Tools
	switch {
	case call.ByModel:
		by = command.ByModel
	case call.Within != nil:
		by, tools = command.ByModel, call.Within
	}
	own := &command.Call{
		Command: call.Command, Params: call.Params, By: by, Step: !call.ByModel, As: call.As, Run: call.Run, Root: call.Root, Sentinel: call.Sentinel, Path: call.Path,
		StepName: call.StepName, Iteration: call.Iteration, Attempt: call.Attempt, Key: call.Key, Workspace: call.Workspace, Env: call.Env, Environment: call.Environment, Deadline: call.Deadline,
		Tools: tools, Within: call.Within, Repeated: call.Repeated,
		Queue: call.Queue,
	}
	own.Redact = (*Host)(c).redactFor(own)
	if call.Documents != nil {
		own.Records = (*Host)(c).recordsOf(own, call.Documents)
	}
	others := own.Share() != ""
	if others {
		own.Hashes = c.hashes.Of
	}
	out, err := (*Host)(c).call(runtime.WithDocumentOwner(withRun(ctx, call.Run), own.Share()), own)
	if others {
		out = c.hashes.JSON(out)
	}
	return out, err
}

// records is a transaction as commands see it.
type records struct {
	*runtime.DocumentTx
	redact func([]byte) []byte // of documents before they are compared with a filter, nil for none
}

var _ command.Records = records{}

// recordsOf returns a transaction as a call sees it. What agents and models write counts for their quota,
// and one call of theirs reads a bounded number of bytes.
func (h *Host) recordsOf(call *command.Call, tx *runtime.DocumentTx) records {
	most := int64(h.settings.Limits.AgentBytes)
	tx.CountFor(runtime.DocumentQuota{Owner: call.Share(), Most: most, All: allAgents * most})
	if call.Share() != "" {
		tx.BoundReads(command.HeldBytes)
		tx.OnRead(call.Charge)
	}
	return records{tx, call.Redact}
}

// allAgents is how many times as many bytes as one agent may have all agents and models have together.
const allAgents = 4

// redactFor returns what the results of a call are redacted with, nil if its caller sees secrets.
func (h *Host) redactFor(call *command.Call) func([]byte) []byte {
	if !call.Held() {
		return nil
	}
	if h.secrets.LearnStored(); !h.redactor.Active() {
		return nil
	}
	return h.redact
}

// List selects documents in the order of their ids. Documents whose id holds a secret are left out
// for callers who do not see it.
func (r records) List(ctx context.Context, collection string, q command.Query) (out []sentinels.Document, next string, err error) {
	limit := q.Limit
	if limit <= 0 {
		limit = 100
	}
	limit = min(limit, 1000)
	matches, last := q.Matcher(), q.After
	err = r.Scan(ctx, collection, q.After, q.Reverse, func(d sentinels.Document) bool {
		if last != q.After && r.ReadEnough() { // so that each call gets further
			next = last
			return false
		}
		if r.redact != nil {
			if string(r.redact([]byte(d.ID))) != d.ID {
				return true
			}
			d.Data = r.redact(d.Data)
		}
		last = d.ID
		if matches(d) {
			out = append(out, d)
		}
		return len(out) < limit
	})
	return out, next, err
}

// outgoing is the client for requests of plugins as the engine sees it.
type outgoing struct{ *egress.Client }

var _ runtime.HTTP = outgoing{}

func (o outgoing) Do(ctx context.Context, call runtime.PluginCall) (json.RawMessage, error) {
	hosts, _ := call.Grant.Names(abi.UseHTTP)
	secrets := map[string][]string{}
	for name, to := range call.Grant.Secrets {
		// What the operator says of a secret counts for what the plugin asked for.
		if call.Grant.Allows(abi.UseSecret, name) {
			secrets[name] = to
		}
	}
	return o.Client.Do(withRun(ctx, call.Run), egress.Call{
		Plugin: call.Plugin, Hosts: hosts, Private: call.Grant.Private, Secrets: secrets, Key: call.Key, Request: call.Request,
	})
}

// folders are plugins' files as the engine sees them.
type folders struct {
	*files.Access
	host *Host
}

var _ runtime.Folders = folders{}

func (f folders) Do(ctx context.Context, call runtime.PluginCall) (json.RawMessage, error) {
	granted := map[string]files.Folder{}
	for word, to := range call.Grant.Folders {
		// What the operator says of a folder counts for what the plugin asked for:
		// a word to read, a word with :rw to write too.
		mayWrite := call.Grant.Allows(abi.UseFolder, word+":rw")
		if mayWrite || call.Grant.Allows(abi.UseFolder, word) {
			granted[word] = files.Folder{Path: to.Path, Write: to.Write && mayWrite}
		}
	}
	base, err := f.host.baseOf(call.Workspace, call.Within)
	if err != nil {
		return nil, err
	}
	return f.Access.Do(ctx, files.Call{Plugin: call.Plugin, Workspace: call.Workspace, Base: base, Folders: granted, Request: call.Request})
}

// hostFiles are the files and folders of this host. Models, agents, viewers and plugins do
// not reach them, whatever their names are and wherever they were granted folders.
func (h *Host) hostFiles() command.HostFiles {
	// A server executes what it finds in the folders that it watches, below the workspace too.
	own := command.HostFiles{Closed: []string{h.state}, Fixed: foldersync.Folders(h.dir, h.opt.Workspace)}
	if filepath.Base(h.dir) == DirName {
		own.Fixed = append(own.Fixed, h.dir)
	} else { // a folder with other things in it
		own.Fixed = append(own.Fixed, filepath.Join(h.dir, "do.json"))
	}
	if h.opt.Plugins != "" {
		own.Fixed = append(own.Fixed, h.opt.Plugins)
	}
	// The user's folder has the configuration, and the key that seals grants.
	if file := config.Path(h.opt.Getenv); file != "" {
		own.Closed = append(own.Closed, filepath.Dir(file))
	}
	if h.settings.File != "" {
		own.Closed = append(own.Closed, h.settings.File)
	}
	for _, place := range h.settings.Secrets {
		if place.File != "" {
			own.Closed = append(own.Closed, place.File)
		}
	}
	// Worktrees and clones are there, with the settings that git gets for them.
	if base := userCache(h.opt.Getenv); base != "" {
		own.Caches = []string{filepath.Join(base, "sentinel")}
	}
	return own
}

// executions is the shell manager as the engine sees it.
type executions Host

var _ runtime.Executions = (*executions)(nil)

func (e *executions) Watch(ctx context.Context, run sentinels.RunID, request json.RawMessage) (json.RawMessage, error) {
	return e.shells.Watch(ctx, run, request)
}

func (e *executions) FileStart(_ context.Context, w runtime.FileWatch) (string, error) {
	own, err := e.fileWatch(w)
	if err != nil {
		return "", err
	}
	return e.shells.FileStart(own)
}

func (e *executions) WatchFile(ctx context.Context, w runtime.FileWatch) (json.RawMessage, error) {
	own, err := e.fileWatch(w)
	if err != nil {
		return nil, err
	}
	return e.shells.WatchFile(ctx, own)
}

// fileWatch returns a watch with the rules of code/read for its run.
func (e *executions) fileWatch(w runtime.FileWatch) (shell.FileWatch, error) {
	own := shell.FileWatch{Workspace: w.Workspace, Request: w.Request, Position: w.Position, Due: w.Due}
	if w.Within == nil {
		return own, nil
	}
	if read, _ := e.registry.Lookup("code/read"); !command.Allowed(w.Within, read) {
		return own, &abi.Error{
			Code: abi.Denied, Permanent: true, Message: "watch file: the definition of this run comes from a model or an agent that may not call code/read",
			Hint: "a person may accept a stored definition with `sentinel accept`; otherwise name the command in the definition that starts the run",
		}
	}
	own.MayRead = (*Host)(e).fileRules().In(w.Workspace).MayRead
	var err error
	own.Base, err = (*Host)(e).baseOf(w.Workspace, w.Within)
	return own, err
}

func (e *executions) EndRun(ctx context.Context, run sentinels.RunID) error {
	return e.shells.EndRun(ctx, run)
}

func (e *executions) EndBackground(ctx context.Context, run sentinels.RunID, ends func(path string) bool) error {
	return e.shells.EndBackground(ctx, run, ends)
}

func (e *executions) Interrupted(ctx context.Context, run sentinels.RunID) ([]runtime.InterruptedExecution, error) {
	lost, err := e.shells.Interrupted(ctx, run)
	return interrupted(lost), err
}

// InterruptedRuns is asked in place of Interrupted when all runs are resumed.
func (e *executions) InterruptedRuns(ctx context.Context) (map[sentinels.RunID][]runtime.InterruptedExecution, error) {
	lost, err := e.shells.InterruptedRuns(ctx)
	out := make(map[sentinels.RunID][]runtime.InterruptedExecution, len(lost))
	for run, records := range lost {
		out[run] = interrupted(records)
	}
	return out, err
}

func interrupted(lost []shell.Record) []runtime.InterruptedExecution {
	var out []runtime.InterruptedExecution
	for _, r := range lost {
		out = append(out, runtime.InterruptedExecution{Execution: r.ID, Path: r.Path})
	}
	return out
}

func (e *executions) Memory(run sentinels.RunID) (int64, string) { return e.shells.Memory(run) }

// contexts builds $ragContext.
type contexts Host

var _ runtime.Contexts = (*contexts)(nil)

func (c *contexts) Build(ctx context.Context, req runtime.ContextRequest) (json.RawMessage, error) {
	base, err := (*Host)(c).baseOf(req.Workspace, req.Within)
	if err != nil {
		return nil, err
	}
	res, err := rag.New((*Host)(c).ragOptions()).Build(ctx, rag.Request{
		Recipe: req.Recipe, Sources: req.Sources, Workspace: req.Workspace, Base: base, Run: req.Run, Variables: req.Variables,
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(res)
}

type runKey struct{}

// withRun notes the run for which a command makes turns of models, which its budget pays, or
// a plugin requests.
func withRun(ctx context.Context, run sentinels.RunID) context.Context {
	return context.WithValue(ctx, runKey{}, run)
}

type senderKey struct{}

// withSender notes the run whose process sent a call over the API.
func withSender(ctx context.Context, run sentinels.RunID) context.Context {
	return context.WithValue(ctx, senderKey{}, run)
}

func senderOf(ctx context.Context) sentinels.RunID {
	run, _ := ctx.Value(senderKey{}).(sentinels.RunID)
	return run
}

func runOf(ctx context.Context) sentinels.RunID {
	run, _ := ctx.Value(runKey{}).(sentinels.RunID)
	return run
}
