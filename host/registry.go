package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/command/ai"
	auditcommand "github.com/sentinel-runtime/sentinel/host/command/audit"
	"github.com/sentinel-runtime/sentinel/host/command/chat"
	checkpointcommand "github.com/sentinel-runtime/sentinel/host/command/checkpoint"
	"github.com/sentinel-runtime/sentinel/host/command/code"
	"github.com/sentinel-runtime/sentinel/host/command/data"
	"github.com/sentinel-runtime/sentinel/host/command/event"
	"github.com/sentinel-runtime/sentinel/host/command/forge"
	"github.com/sentinel-runtime/sentinel/host/command/git"
	httpcommand "github.com/sentinel-runtime/sentinel/host/command/http"
	"github.com/sentinel-runtime/sentinel/host/command/inbox"
	"github.com/sentinel-runtime/sentinel/host/command/memory"
	"github.com/sentinel-runtime/sentinel/host/command/notify"
	"github.com/sentinel-runtime/sentinel/host/command/rag"
	"github.com/sentinel-runtime/sentinel/host/command/sentinel"
	"github.com/sentinel-runtime/sentinel/host/command/shell"
	"github.com/sentinel-runtime/sentinel/host/command/ticket"
	"github.com/sentinel-runtime/sentinel/host/command/verify"
	"github.com/sentinel-runtime/sentinel/host/command/worktree"
	pulls "github.com/sentinel-runtime/sentinel/host/forge"
	"github.com/sentinel-runtime/sentinel/host/plugin"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// openRegistry makes the registry of everything this host can do.
func (h *Host) openRegistry() (*command.Registry, error) {
	r, err := command.NewRegistry()
	if err != nil {
		return nil, err
	}
	owned := ticket.Collections()
	owned[chat.Collection] = "use collaboration/chat/send"
	owned[pulls.Collection] = "use the commands forge/*"
	steering := sentinel.Options{Runtime: h.rt, Dir: h.dir, Plugins: h.opt.Plugins, Definitions: h.opt.Files, Trust: h.trust, Lookup: r.Lookup, Gate: h.isGate, Rules: h.fileRules(), BaseURL: h.BaseURL}
	families := [][]command.Command{
		code.Commands(code.Options{Run: h.shells.Run, Rules: h.fileRules()}),
		shell.Commands(h.shells),
		git.Commands(git.Options{
			Rules: h.fileRules(), Read: h.settings.Verify.Read,
			Worktree: func(folder string) string { return h.worktrees.GitDir(folder) }, // they are opened later
			Check:    h.confining.checkRepository,
			HoldTree: h.confining.holdTree,
			OfTicket: h.isBranchOfTicket,
		}),
		data.Commands(data.Options{
			Definitions: (*definitions)(h),
			Owned:       owned,
			Separate:    map[string]string{memory.Collection: "use memory/recall and memory/store"},
		}),
		chat.Commands(chat.Options{Chain: h.rt.Chain}),
		memory.Commands(),
		ticket.Commands(h.tickets, h.learner, h.completeTicket),
		verify.Commands(h.verify),
		worktree.Commands(worktree.Options{Service: h.worktrees, Holder: h.holder}),
		forge.Commands(h.forge, h.holder),
		notify.Commands(h.notify, h.notifyWanted),
		checkpointcommand.Commands(checkpointcommand.Options{Service: h.checkpoints, Runs: h.rt}),
		auditcommand.Commands(h.state),
		inbox.Commands(inbox.Options{Tickets: h.tickets, AgentChanges: h.rt.AgentChanges, GivenInputs: h.rt.GivenInputs, Runs: func() ([]runtime.RunInfo, error) {
			return h.rt.Runs(runtime.RunFilter{Statuses: runtime.Unfinished()})
		}, Definitions: func(ctx context.Context) (list []inbox.Definition, err error) {
			waiting, err := sentinel.ListUnaccepted(ctx, steering)
			for _, d := range waiting {
				list = append(list, inbox.Definition(d))
			}
			return list, err
		}}),
		ai.Commands(ai.Options{Models: (*metered)(h)}),
		rag.Commands(h.ragOptions()),
		httpcommand.Commands(httpcommand.Options{Client: h.egress, Private: h.settings.HTTP.Private, Secret: h.stepSecret, Hide: h.redactor.Register}),
		event.Commands(event.Options{Log: h.rt, Chain: h.rt.Chain}),
		sentinel.Commands(steering),
		plugin.Commands(plugin.Options{
			Plugins: h.rt, Grants: h.grants, Regrant: h.regrant, Lookup: r.Lookup, CheckPermission: checkPermission,
			Keep: h.hostFiles().All(),
		}),
		{command.SearchTools(r), command.PreviewTool(r)},
	}
	var errs []error
	for _, family := range families {
		errs = append(errs, r.Add(family...))
	}
	r.Follow((*pluginCommands)(h))
	r.Remember((*keyring)(h))
	r.Place(h.checkPlace)
	return r, errors.Join(errs...)
}

// regrant has the engine ask again what plugins may do.
func (h *Host) regrant(ctx context.Context) error {
	if h.opt.Regrant != nil {
		return h.opt.Regrant(ctx)
	}
	return h.rt.Regrant(ctx)
}

// definitions are the stored sentinels as documents.
type definitions Host

// Definition returns a sentinel as a document.
func (d *definitions) Definition(_ context.Context, id string) (sentinels.Document, error) {
	s, err := d.rt.Definition(sentinels.ID(id))
	if err != nil {
		return sentinels.Document{}, err
	}
	return d.document(s)
}

// Definitions returns all of them.
func (d *definitions) Definitions(context.Context) ([]sentinels.Document, error) {
	stored, err := d.rt.Definitions()
	if err != nil {
		return nil, err
	}
	docs := make([]sentinels.Document, 0, len(stored))
	for _, s := range stored {
		doc, err := d.document(s)
		if err != nil {
			return nil, err
		}
		docs = append(docs, doc)
	}
	return docs, nil
}

// document shows a sentinel as an entity: with its uniqueId, and with the statistics of
// its runs, which are no part of its revisions.
func (d *definitions) document(s runtime.Stored) (sentinels.Document, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(s.Definition, &fields); err != nil {
		return sentinels.Document{}, err
	}
	totals, err := d.rt.Totals(s.ID)
	if err != nil {
		return sentinels.Document{}, err
	}
	computed := map[string]any{"uniqueId": s.ID, "runCount": totals.Runs}
	if totals.Runs > 0 {
		computed["lastRunAt"] = totals.NewestAt.UTC()
	}
	if average, ok := totals.AverageDuration(); ok {
		computed["averageDurationMs"] = average.Milliseconds()
	}
	for name, value := range computed {
		if fields[name], err = json.Marshal(value); err != nil {
			return sentinels.Document{}, err
		}
	}
	body, err := json.Marshal(fields)
	return sentinels.Document{
		Collection: "sentinels", ID: string(s.ID), Revision: uint64(s.Revision), CreatedAt: s.SavedAt, UpdatedAt: s.SavedAt, Data: body,
	}, err
}

// fileRules decide which files models do not read or write.
func (h *Host) fileRules() command.FileRules {
	return command.FileRules{Readable: h.settings.Models.SecretFiles, Host: h.hostFiles(), Redact: h.redactor.Redact}
}

func (h *Host) ragOptions() rag.Options {
	return rag.Options{
		Git: (*repository)(h), Chat: (*rooms)(h), Failures: (*failures)(h), Recipes: (*recipes)(h), Strategy: (*strategies)(h), Rules: h.fileRules(),
		IndexDir: filepath.Join(h.state, "index"), Logger: h.opt.Logger,
	}
}

// repository is git as context sees it: the command, called for the model that reads the context.
type repository Host

func (r *repository) git(ctx context.Context, workspace, operation string, limit int) (git.Result, error) {
	params, err := json.Marshal(map[string]any{"operation": operation})
	if limit > 0 {
		params, err = json.Marshal(map[string]any{"operation": operation, "limit": limit})
	}
	if err != nil {
		return git.Result{}, err
	}
	out, err := r.registry.Call(ctx, &command.Call{Command: "code/git", Params: params, By: command.ByModel, Tools: []string{"code/git"}, Workspace: workspace})
	if err != nil {
		return git.Result{}, err
	}
	var res git.Result
	return res, json.Unmarshal(out, &res)
}

// Status returns the state of a working tree.
func (r *repository) Status(ctx context.Context, workspace string) (rag.GitStatus, error) {
	s, err := r.git(ctx, workspace, "status", 0)
	if err != nil {
		return rag.GitStatus{}, err
	}
	out := rag.GitStatus{Branch: s.Branch, Upstream: s.Upstream, Ahead: s.Ahead, Behind: s.Behind}
	for _, f := range s.Files {
		out.Changes = append(out.Changes, rag.Change{Status: f.Staged + f.Changed, Path: f.Path})
	}
	return out, nil
}

// Log returns the newest commits.
func (r *repository) Log(ctx context.Context, workspace string, limit int) ([]rag.Commit, error) {
	res, err := r.git(ctx, workspace, "log", limit)
	if err != nil {
		return nil, err
	}
	out := make([]rag.Commit, 0, len(res.Commits))
	for _, c := range res.Commits {
		at, err := time.Parse(time.RFC3339, c.Date)
		if err != nil {
			return nil, fmt.Errorf("read git log: %w", err)
		}
		out = append(out, rag.Commit{Hash: c.Hash, Author: c.Author, Time: at, Subject: c.Subject})
	}
	return out, nil
}

// rooms is the chat as context sees it.
type rooms Host

// RecentMessages returns what was said last in a room.
func (r *rooms) RecentMessages(ctx context.Context, room string, limit int) ([]rag.ChatMessage, error) {
	var out []rag.ChatMessage
	err := r.rt.Documents().View(ctx, func(tx *runtime.DocumentTx) error {
		messages, err := chat.History(ctx, records{DocumentTx: tx}, room, limit)
		for _, m := range messages {
			out = append(out, rag.ChatMessage{From: m.From, Kind: kindOf(m.By), Text: m.Text, Time: m.SentAt})
		}
		return err
	})
	return out, err
}

// kindOf returns what the speaker of a message is.
func kindOf(by command.By) string {
	if by == command.ByUser {
		return "person"
	}
	return string(by)
}

// strategies are those of recipes and definitions as context sees them.
type strategies Host

// RecipeStrategy reads the strategy of a recipe's file, else of the definition of a run.
func (s *strategies) RecipeStrategy(_ context.Context, run sentinels.RunID, recipe string) (json.RawMessage, error) {
	var file struct{ Strategy json.RawMessage }
	if raw, err := (*recipes)(s).read(recipe); err == nil && strictjson.DecodeOpen(raw, &file, strictjson.Limits{}) == nil && file.Strategy != nil {
		return file.Strategy, nil
	}
	if run == "" {
		return nil, nil
	}
	v, err := s.rt.RunDefinition(run)
	if err != nil {
		return nil, err
	}
	return v.Definition.Extra["strategy"], nil
}

// failures is what went wrong lately as context sees it.
type failures Host

// RecentFailures returns runs of a workspace that failed, the newest last.
func (f *failures) RecentFailures(_ context.Context, workspace string, _ sentinels.RunID, limit int) ([]rag.Failure, error) {
	runs, err := f.rt.Runs(runtime.RunFilter{Status: sentinels.StatusFailed})
	if err != nil {
		return nil, err
	}
	var out []rag.Failure
	for _, r := range runs {
		if r.Workspace != workspace || r.Error == nil {
			continue
		}
		out = append([]rag.Failure{{
			Time: r.EndedAt, Sentinel: r.Sentinel, Step: r.Step, Code: string(r.Error.Code), Message: r.Error.Message,
		}}, out...)
		if len(out) == limit {
			break
		}
	}
	return out, nil
}

// recipes are the operator's own lists of sources, DIR/recipes/NAME.json.
type recipes Host

// read returns the text of a recipe's file, or the error not_found.
func (r *recipes) read(name string) ([]byte, error) {
	notFound := &abi.Error{Code: abi.NotFound, Message: "no recipe " + name}
	if name == "" || string(sentinels.Slug(name)) != name {
		return nil, notFound
	}
	raw, err := r.trust.Read(filepath.Join(r.dir, "recipes", name+".json"), sentinels.MaxBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, notFound
	}
	return raw, err
}

// RecipeSources reads a recipe file: a list of sources, or an object with
// "sources", "ragSources" or "ragTemplate".
func (r *recipes) RecipeSources(_ context.Context, name string) ([]string, error) {
	raw, err := r.read(name)
	if err != nil {
		return nil, err
	}
	var list []string
	if strictjson.Decode(raw, &list, strictjson.Limits{}) == nil {
		return list, nil
	}
	var file struct {
		Sources    []string `json:"sources"`
		RAGSources []string `json:"ragSources"`
	}
	if err := strictjson.DecodeOpen(raw, &file, strictjson.Limits{}); err != nil {
		return nil, &abi.Error{Code: abi.BadFields, Message: "recipe " + name + ": " + err.Error()}
	}
	list = append(file.Sources, file.RAGSources...)
	if list == nil {
		list, _ = sentinels.TemplateSources(raw) // a recipe that is also a sentinel
	}
	return list, nil
}
