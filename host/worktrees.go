package host

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/checkpoint"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/forge"
	"github.com/sentinel-runtime/sentinel/host/internal/gitsource"
	"github.com/sentinel-runtime/sentinel/host/internal/obeyed"
	"github.com/sentinel-runtime/sentinel/host/ticket"
	"github.com/sentinel-runtime/sentinel/host/worktree"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// openWorktrees makes the service of worktrees as it is configured.
func (h *Host) openWorktrees() *worktree.Service {
	c := h.settings.Worktrees
	return worktree.New(worktree.Options{
		Dir: h.userDir("worktrees"), Store: h.rt.StoreID(), Ticket: h.ticketOfWorktree, Most: c.Most, Bytes: int64(c.Size),
		SSHKey: h.sshKey(), KnownHosts: h.settings.Verify.KnownHosts, Read: h.settings.Verify.Read, Credential: h.forgeCredential, Hides: h.fileRules().Match, Sealed: h.fileRules().MatchContent, Logger: h.opt.Logger,
		Check:    h.confining.checkRepository,
		HoldTree: h.confining.holdTree,
	})
}

// openCheckpoints makes the service of checkpoints as it is configured. They are in the
// state folder, where neither models nor plugins read.
func (h *Host) openCheckpoints() *checkpoint.Service {
	c := h.settings.Checkpoints
	opt := checkpoint.Options{
		Dir: filepath.Join(h.state, "checkpoints"), Keep: c.Keep, Bytes: int64(c.Size), FileBytes: int64(c.FileSize),
		IgnoredFileBytes: int64(c.IgnoredFileSize), IgnoredBytes: int64(c.IgnoredSize), IgnoredFiles: c.IgnoredFiles, Exclude: []string{h.state},
		HoldTree: h.confining.holdTree,
	}
	if h.confines() { // a checkpoint may have what a confined command made, before it was renamed
		names := obeyedNames()
		opt.Obeyed = func(path string) bool { return obeyed.Holds(path, names) }
	}
	return checkpoint.New(opt)
}

// ticketOfWorktree is a ticket as worktrees see it.
func (h *Host) ticketOfWorktree(ctx context.Context, id string, token uint64) (out worktree.Ticket, err error) {
	var v ticket.View
	err = h.updateTickets(ctx, func(tx ticket.Tx) error {
		v, err = h.tickets.GetHeld(ctx, tx, id, token)
		return err
	})
	if err != nil {
		return out, err
	}
	out = worktree.Ticket{ID: v.ID, RepoURL: cmp.Or(v.RepoURL, h.opt.Workspace), Branch: v.BranchName, Base: v.BaseBranch}
	if v.VerificationStatus == ticket.Passing {
		out.Verified = v.VerifiedCommit
	}
	if v.Lease != nil {
		out.Token = v.Lease.Token
	}
	return out, nil
}

// holder returns an error if the caller reports about claims of its own only, and the one with the
// token is none.
func (h *Host) holder(ctx context.Context, call *command.Call, id string, token uint64) error {
	switch {
	case !call.OwnClaims():
		return nil
	case token == 0:
		return call.TokenMissing()
	}
	return h.updateTickets(ctx, func(tx ticket.Tx) error { return h.tickets.CheckHolder(ctx, tx, id, token, call.Claimant()) })
}

// isBranchOfTicket reports whether a branch is, or may become, that of a ticket which was not cancelled, in whatever
// repository. File systems ignore case.
func (h *Host) isBranchOfTicket(ctx context.Context, branch string) (found bool, err error) {
	trees, err := h.worktrees.List() // with the branches of tickets that name none
	if err != nil {
		return false, err
	}
	if worktree.MayBeOfTicket(branch) || slices.ContainsFunc(trees, func(w worktree.Worktree) bool { return strings.EqualFold(w.Branch, branch) }) {
		return true, nil
	}
	filter := ticket.Filter{Limit: 200}
	for {
		var page ticket.List
		err := h.updateTickets(ctx, func(tx ticket.Tx) (err error) {
			page, err = h.tickets.List(ctx, tx, filter)
			return err
		})
		if err != nil {
			return false, err
		}
		of := func(t ticket.View) bool {
			return t.State != ticket.Cancelled && strings.EqualFold(t.BranchName, branch)
		}
		if found = slices.ContainsFunc(page.Tickets, of); found || page.Next == "" {
			return found, nil
		}
		filter.After = page.Next
	}
}

// completeTicket reports work as finished while its branch stays where it is: a commit that is
// under way ends before, or is refused because its claim has ended.
func (h *Host) completeTicket(ctx context.Context, id, actor string, r ticket.Result) (v ticket.View, err error) {
	err = h.worktrees.Hold(ctx, id, func(pushed string) error {
		r.Pushed = pushed
		v, err = h.verify.Complete(ctx, id, actor, r)
		return err
	})
	return v, err
}

// userDir is a folder of this host in the user's cache, where commands of runs may read
// and write, unlike in the state folder. Without a cache it is in the state folder.
func (h *Host) userDir(name string) string {
	base := userCache(h.opt.Getenv)
	if base == "" {
		return filepath.Join(h.state, name)
	}
	sum := sha256.Sum256([]byte(h.state))
	return filepath.Join(base, "sentinel", name, hex.EncodeToString(sum[:8]))
}

// openForge makes the service of pull requests as it is configured.
func (h *Host) openForge() (*forge.Service, error) {
	c := h.settings.Forge
	opt := forge.Options{URL: c.URL, Update: h.updateForge, Work: h.proposal}
	if c.URL != "" {
		client, err := forge.NewClient(forge.ClientOptions{URL: c.URL, Kind: c.Kind, Token: h.forgeToken})
		if err != nil {
			return nil, err
		}
		opt.Forge = client
	}
	return forge.New(opt), nil
}

func (h *Host) forgeToken() (string, error) { return h.secrets.Value(h.settings.Forge.Token) }

// forgeCredential is the token for git, the zero value where there is none: git's own
// credentials count then.
func (h *Host) forgeCredential() (gitsource.Credential, error) {
	if h.settings.Forge.URL == "" {
		return gitsource.Credential{}, nil
	}
	token, err := h.forgeToken()
	if abi.CodeOf(err) == abi.NotFound {
		return gitsource.Credential{}, nil
	}
	return gitsource.Credential{URL: h.settings.Forge.URL, Token: token}, err
}

// updateForge executes a transaction on the records of pull requests.
func (h *Host) updateForge(ctx context.Context, fn func(forge.Tx) error) error {
	return h.rt.Documents().Update(ctx, func(tx *runtime.DocumentTx) error { return fn(tx) })
}

// proposal is the branch of a ticket's worktree as a pull request needs it.
func (h *Host) proposal(ctx context.Context, id string, token uint64) (forge.Work, error) {
	w, remote, err := h.worktrees.Find(ctx, id, token)
	return forge.Work{Branch: w.Branch, Base: w.Base, Commit: w.Commit, Remote: remote}, err
}
