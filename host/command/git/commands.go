package git

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
	"github.com/sentinel-runtime/sentinel/host/internal/gitsource"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Options configure the family. The zero value works.
type Options struct {
	// Program is the absolute path of git: default the first one in an
	// absolute folder of PATH, looked up once.
	Program string
	// Timeout limits a call that has no deadline: default 5 minutes.
	Timeout time.Duration
	// Rules say of which files changes models do not see. The zero value goes by
	// names.
	Rules command.FileRules
	// Read are folders that the repository of a caller that is a model, agent or viewer may lead to,
	// besides its own.
	Read []string
	// Worktree returns the git directory of the worktree that the host has made in a folder, "" if it
	// has made none there. Default: none.
	Worktree func(folder string) string
	// Check returns an error if a confined command that is being executed may have made the repository of
	// a folder: callers that are models, agents or viewers do not work in it. Default: it never has.
	Check func(folder string) error
	// HoldTree keeps confined commands that can write a work tree from being executed until release is
	// called; the error is conflict if one is. Default: there are none.
	HoldTree func(folder string) (release func(), err error)
	// OfTicket reports whether a branch is, or may become, that of a ticket: models and agents push it with the commands
	// that compare it with what was verified. Default: none is.
	OfTicket func(ctx context.Context, branch string) (bool, error)
}

// Commands returns the family. Without a git on the machine its calls fail
// with unavailable.
func Commands(opt Options) []command.Command {
	if opt.Timeout == 0 {
		opt.Timeout = 5 * time.Minute
	}
	if opt.Check == nil {
		opt.Check = func(string) error { return nil }
	}
	if opt.HoldTree == nil {
		opt.HoldTree = func(string) (func(), error) { return func() {}, nil }
	}
	if opt.OfTicket == nil {
		opt.OfTicket = func(context.Context, string) (bool, error) { return false, nil }
	}
	if opt.Program == "" {
		opt.Program = gitexec.LookPath()
	}
	git := gitexec.Runner{Program: opt.Program}
	g := &runner{Runner: git, rules: opt.Rules, worktree: opt.Worktree, check: opt.Check, holdTree: opt.HoldTree, ofTicket: opt.OfTicket, source: &gitsource.Mirrors{Git: git, Read: opt.Read}}
	return []command.Command{
		command.New("code/git", "Work on the git repository of the workspace: status, diff, log, show, add, commit, push, pull, fetch, branch, checkout, init.",
			// ByName: checkout and pull write any file of a commit, those that models may not write included.
			command.Options{Effect: command.Changes, ByName: true, Timeout: opt.Timeout, Waits: asksRemote, Reads: map[string][]string{"operation": {"status", "diff", "log", "show"}},
				Aliases: map[string]string{"count": "limit"}}, g.run),
		command.New("code/diff", "Show what was changed in the workspace since the last commit or since base.",
			command.Options{Effect: command.Reads, Idempotent: true, Timeout: opt.Timeout},
			func(ctx context.Context, call *command.Call, in diffIn) (Result, error) {
				return g.run(ctx, call, request{Operation: "diff", Paths: in.Paths, Staged: in.Staged, Base: in.Base})
			}),
	}
}

// asksRemote reports whether a call of code/git may wait for another host.
func asksRemote(params json.RawMessage) bool {
	var in struct{ Operation string }
	err := json.Unmarshal(params, &in)
	return err == nil && slices.Contains([]string{"push", "pull", "fetch"}, in.Operation)
}

type diffIn struct {
	Paths  []string `json:"paths,omitempty" jsonschema:"only these files and folders"`
	Staged bool     `json:"staged,omitempty" jsonschema:"only what is staged"`
	Base   string   `json:"base,omitempty" jsonschema:"commit or branch to compare with"`
}

type request struct {
	Operation string   `json:"operation" enum:"status,diff,log,show,add,commit,push,pull,fetch,branch,checkout,init" jsonschema:"what to do"`
	Paths     []string `json:"paths,omitempty" jsonschema:"files and folders, relative to the workspace: for add, diff, log, commit, and for checkout to take back changes"`
	Message   string   `json:"message,omitempty" jsonschema:"commit: the message"`
	All       bool     `json:"all,omitempty" jsonschema:"commit: stage changes of known files first"`
	Remote    string   `json:"remote,omitempty" jsonschema:"push, pull, fetch: name of a configured remote; that of the branch if not given"`
	Branch    string   `json:"branch,omitempty" jsonschema:"push, pull: the branch, the current one if not given; branch, checkout, init: its name; models and agents make those below work/"`
	Create    bool     `json:"create,omitempty" jsonschema:"checkout: make the branch"`
	Staged    bool     `json:"staged,omitempty" jsonschema:"diff: only what is staged"`
	Base      string   `json:"base,omitempty" jsonschema:"diff: what to compare with; log: where to start; branch, checkout: what to make it from"`
	Ref       string   `json:"ref,omitempty" jsonschema:"show: commit to show, HEAD if not given"`
	Limit     int      `json:"limit,omitempty" jsonschema:"log: how many commits, 20 if not given" minimum:"1" maximum:"500"`
	Format    string   `json:"format,omitempty" jsonschema:"log: the form of output, as for git log --format: oneline, short, medium, full, fuller, or a text with placeholders such as %h %an %ad %s"`
}

// Result is what an operation gives; fields that do not belong to it are
// missing.
type Result struct {
	Success   bool     `json:"success"`
	Operation string   `json:"operation"`
	ExitCode  int      `json:"exitCode"`
	Output    string   `json:"output" jsonschema:"what there is to read"`
	Diff      string   `json:"diff,omitzero" jsonschema:"diff, show: the patch"`
	Of        string   `json:"of,omitempty" jsonschema:"diff: what was compared"`
	Files     []File   `json:"files,omitempty" jsonschema:"status, diff: the files"`
	Clean     *bool    `json:"clean,omitempty" jsonschema:"status: nothing changed"`
	Branch    string   `json:"branch,omitempty" jsonschema:"the branch it was about"`
	Remote    string   `json:"remote,omitempty"`
	Upstream  string   `json:"upstream,omitempty"`
	Ahead     int      `json:"ahead,omitempty"`
	Behind    int      `json:"behind,omitempty"`
	Hash      string   `json:"hash,omitempty" jsonschema:"the commit it ended at"`
	Committed *bool    `json:"committed,omitempty" jsonschema:"commit: false when there was nothing to commit"`
	Pushed    *bool    `json:"pushed,omitempty" jsonschema:"push: false when the remote had everything, or refused"`
	Author    string   `json:"author,omitempty"`
	Commits   []Commit `json:"commits,omitempty"`
	Branches  []string `json:"branches,omitempty" jsonschema:"the 500 with the newest commits"`
	Truncated bool     `json:"truncated,omitempty" jsonschema:"there is more than fits: name paths"`
	Hidden    []string `json:"hidden,omitempty" jsonschema:"files with changes that models do not see, since they hold secrets"`
	Binary    []string `json:"binary,omitempty" jsonschema:"files whose changes the patch does not show, since git takes them for binary, by a zero byte in them or by .gitattributes; the first 100"`
}

// File is one changed file.
type File struct {
	Path    string `json:"path"`
	From    string `json:"from,omitempty" jsonschema:"where it was before it was renamed"`
	Staged  string `json:"staged,omitempty" jsonschema:"status: what is staged, as one letter of git"`
	Changed string `json:"changed,omitempty" jsonschema:"status: what is not staged, ? for a file git does not know"`
	Added   int    `json:"added,omitempty"`
	Removed int    `json:"removed,omitempty"`
	Binary  bool   `json:"binary,omitempty" jsonschema:"git shows no lines of it"`
}

// Commit is one entry of a log.
type Commit struct {
	Hash    string `json:"hash"`
	Author  string `json:"author"`
	Date    string `json:"date"`
	Subject string `json:"subject"`
}

// run executes one operation.
func (g *runner) run(ctx context.Context, call *command.Call, in request) (Result, error) {
	if g.Program == "" {
		return Result{}, &abi.Error{Code: abi.Unavailable, Permanent: true, Message: "git: not on this machine", Hint: "install git, in an absolute folder of PATH"}
	}
	if err := in.check(call.Workspace); err != nil {
		return Result{}, err
	}
	own := *g
	own.trees = new([]func())
	defer own.release()
	r, err := own.open(ctx, call, in.Operation)
	if err != nil {
		return Result{}, err
	}
	if call.Held() {
		rules := g.rules.In(r.top)
		r.hides, r.sealed = rules.Match, rules.MatchContent
	}
	out := Result{Operation: in.Operation, Success: true}
	switch in.Operation {
	case "status":
		err = r.status(ctx, &out)
	case "diff":
		err = r.diff(ctx, in, &out)
	case "log":
		err = r.log(ctx, in, &out)
	case "show":
		err = r.show(ctx, in, &out)
	case "add":
		err = r.add(ctx, in, &out)
	case "commit":
		err = r.commit(ctx, in, &out)
	case "push":
		err = r.push(ctx, in, call.Bounded(), &out)
	case "pull", "fetch":
		err = r.pull(ctx, in, &out)
	case "branch":
		err = r.branch(ctx, in, &out)
	case "checkout":
		err = r.checkout(ctx, in, &out)
	case "init":
		err = r.init(ctx, in, &out)
	default:
		err = fmt.Errorf("git %s: not known", in.Operation)
	}
	if err != nil {
		return Result{}, err
	}
	return out, nil
}
