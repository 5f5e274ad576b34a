// Package worktree implements the commands on the worktrees of tickets.
package worktree

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/worktree"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// timeout limits calls without a deadline: a clone or push of a large repository is slow.
const timeout = 15 * time.Minute

// Options configure the family. Both are required.
type Options struct {
	Service *worktree.Service
	// Holder returns an error if the caller reports about claims of its own only, and the one with
	// the token is none.
	Holder func(ctx context.Context, call *command.Call, ticket string, token uint64) error
}

type family struct {
	s      *worktree.Service
	holder func(ctx context.Context, call *command.Call, ticket string, token uint64) error
}

// Commands returns the family worktree/*.
func Commands(opt Options) []command.Command {
	f := family{opt.Service, opt.Holder}
	ids := map[string]string{"ticket_id": "ticket", "ticketId": "ticket", "id": "ticket"}
	write := command.Options{Effect: command.Changes, Idempotent: true, ByName: true, Waits: command.Always, Timeout: timeout, Aliases: ids}
	read := command.Options{Effect: command.Reads, Idempotent: true, Private: true, Timeout: timeout, Aliases: ids}
	return []command.Command{
		command.New("worktree/add", "Make the worktree of a claimed ticket: the files of its repository on a branch of their own.", write, f.add),
		command.New("worktree/review", "Make a worktree for reading: the files of the commit of a claimed ticket that was verified, whatever its branch is now.", write, f.review),
		command.New("worktree/commit", "Commit all changes of a worktree to its branch.", write, f.commit),
		command.New("worktree/rebase", "Put the commits of a worktree onto the current base; a conflict is a result.", write, f.rebase),
		command.New("worktree/diff", "Show what a worktree has changed since its base.", read, f.diff),
		command.New("worktree/push", "Push the branch of a worktree to the remote of its repository.", write, f.push),
		command.New("worktree/remove", "Remove a worktree; what is not committed is committed to its branch first.", write, f.remove),
		command.New("worktree/list", "List the worktrees, oldest first.", command.Options{Effect: command.Reads, Idempotent: true, Private: true}, f.list),
	}
}

type ticketIn struct {
	Ticket string `json:"ticket" jsonschema:"id of the ticket"`
	Token  uint64 `json:"token,omitempty" jsonschema:"of the claim; that of the present one if not given"`
}

type addIn struct {
	ticketIn
	Repo     string `json:"repo,omitempty" jsonschema:"path or URL of the repository; that of the ticket if not given"`
	Base     string `json:"base,omitempty" jsonschema:"branch to begin from; that of the ticket, or the current one of the repository, if not given"`
	Branch   string `json:"branch,omitempty" jsonschema:"branch to make; that of the ticket, or sentinel/ID, if not given"`
	Continue bool   `json:"continue,omitempty" jsonschema:"begin with what an earlier claim committed, not with the base"`
}

func (f family) add(ctx context.Context, call *command.Call, in addIn) (worktree.Added, error) {
	if err := f.holder(ctx, call, in.Ticket, in.Token); err != nil {
		return worktree.Added{}, err
	}
	return f.s.Add(ctx, worktree.Add{Ticket: in.Ticket, Token: in.Token, Repo: in.Repo, Bound: call.Held(), Base: in.Base, Branch: in.Branch, Continue: in.Continue})
}

func (f family) review(ctx context.Context, call *command.Call, in ticketIn) (worktree.Reviewed, error) {
	if err := f.holder(ctx, call, in.Ticket, in.Token); err != nil {
		return worktree.Reviewed{}, err
	}
	return f.s.Review(ctx, in.Ticket, in.Token)
}

type commitIn struct {
	ticketIn
	Message string `json:"message" jsonschema:"of the commit"`
}

func (f family) commit(ctx context.Context, call *command.Call, in commitIn) (worktree.Committed, error) {
	if err := f.holder(ctx, call, in.Ticket, in.Token); err != nil {
		return worktree.Committed{}, err
	}
	return f.s.Commit(ctx, in.Ticket, in.Token, in.Message, call.Key)
}

func (f family) rebase(ctx context.Context, call *command.Call, in ticketIn) (worktree.Rebased, error) {
	if err := f.holder(ctx, call, in.Ticket, in.Token); err != nil {
		return worktree.Rebased{}, err
	}
	return f.s.Rebase(ctx, in.Ticket, in.Token)
}

func (f family) diff(ctx context.Context, call *command.Call, in ticketIn) (worktree.Diff, error) {
	if err := f.holder(ctx, call, in.Ticket, in.Token); err != nil {
		return worktree.Diff{}, err
	}
	if err := call.Count(worktree.MaxDiff); err != nil {
		return worktree.Diff{}, err
	}
	return f.s.Diff(ctx, in.Ticket, in.Token)
}

type pushIn struct {
	ticketIn
	Remote string `json:"remote,omitempty" jsonschema:"name of a remote of a repository on this machine; origin if not given"`
}

func (f family) push(ctx context.Context, call *command.Call, in pushIn) (worktree.Pushed, error) {
	if err := f.holder(ctx, call, in.Ticket, in.Token); err != nil {
		return worktree.Pushed{}, err
	}
	return f.s.Push(ctx, in.Ticket, in.Token, in.Remote)
}

type removeIn struct {
	ticketIn
	Force bool `json:"force,omitempty" jsonschema:"remove it also if its work cannot be committed; left_out and kept of the answer say what that is and where. Only a person may"`
}

func (f family) remove(ctx context.Context, call *command.Call, in removeIn) (worktree.Removed, error) {
	if in.Force && call.By != command.ByUser {
		return worktree.Removed{}, &abi.Error{Code: abi.Denied, Permanent: true, Field: "force", Message: "force: only a person removes a worktree whose work cannot be committed", Hint: "end the claim: the worktree is removed then, and what cannot be committed is kept"}
	}
	// The worktree of a claim that has ended, or of a deleted ticket, is for anyone to remove who names it.
	err := f.holder(ctx, call, in.Ticket, in.Token)
	if code := abi.CodeOf(err); err != nil && code != abi.Conflict && code != abi.NotFound {
		return worktree.Removed{}, err
	}
	if in.Force {
		return f.s.Discard(ctx, in.Ticket, in.Token)
	}
	return f.s.Remove(ctx, in.Ticket, in.Token)
}

type listIn struct {
	After string `json:"after,omitempty" jsonschema:"next of the page before"`
	Limit int    `json:"limit,omitempty" jsonschema:"worktrees on the page, 100 if not given" minimum:"1" maximum:"1000"`
}

type listOut struct {
	Worktrees []worktree.Worktree `json:"worktrees"`
	Next      string              `json:"next,omitempty" jsonschema:"there are more: give it as after"`
}

// list pages by age and ticket: the removal of worktrees between two pages shifts nothing.
func (f family) list(_ context.Context, _ *command.Call, in listIn) (out listOut, err error) {
	all, err := f.s.List()
	if err != nil {
		return out, err
	}
	if at, _, ok := strings.Cut(in.After, " "); in.After != "" {
		if _, err := time.Parse(sortableTime, at); err != nil || !ok {
			return out, &abi.Error{Code: abi.BadFields, Permanent: true, Field: "after", Message: fmt.Sprintf("invalid after %.80q: want the next of an earlier page", in.After)}
		}
	}
	position := func(t worktree.Worktree) string { return t.CreatedAt.UTC().Format(sortableTime) + " " + t.Ticket }
	slices.SortFunc(all, func(a, b worktree.Worktree) int { return cmp.Compare(position(a), position(b)) })
	all = slices.DeleteFunc(all, func(t worktree.Worktree) bool { return position(t) <= in.After })
	if limit := cmp.Or(in.Limit, 100); len(all) > limit {
		all = all[:limit]
		out.Next = position(all[limit-1])
	}
	out.Worktrees = all
	return out, nil
}

// sortableTime is a format of times whose texts sort as the times do.
const sortableTime = "2006-01-02T15:04:05.000000000Z"
