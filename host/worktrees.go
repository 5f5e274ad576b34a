package host

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"

	"github.com/sentinel-runtime/sentinel/host/ticket"
	"github.com/sentinel-runtime/sentinel/host/worktree"
)

// openWorktrees makes the service of worktrees as it is configured.
func (h *Host) openWorktrees() *worktree.Service {
	c := h.settings.Worktrees
	return worktree.New(worktree.Options{
		Dir: h.userDir("worktrees"), Ticket: h.ticketOfWorktree, Most: c.Most, Bytes: int64(c.Size),
		SSHKey: cmp.Or(h.settings.Verify.SSHKey, h.opt.Getenv("GIT_SSH_KEY_PATH")), KnownHosts: h.settings.Verify.KnownHosts, Logger: h.opt.Logger,
	})
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
	if v.Lease != nil {
		out.Token = v.Lease.Token
	}
	return out, nil
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
