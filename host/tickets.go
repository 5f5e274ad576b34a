package host

import (
	"cmp"
	"context"
	"os/exec"
	"slices"
	"sync"

	"github.com/sentinel-runtime/sentinel/host/config"
	"github.com/sentinel-runtime/sentinel/host/confine"
	"github.com/sentinel-runtime/sentinel/host/internal/gitsource"
	"github.com/sentinel-runtime/sentinel/host/ticket"
	"github.com/sentinel-runtime/sentinel/host/verify"
	"github.com/sentinel-runtime/sentinel/host/worktree"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/retry"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// openTickets makes the service of tickets as it is configured.
func (h *Host) openTickets() *ticket.Service {
	c := h.settings.Tickets
	profile, ok := retry.ProfileNamed(c.Profile)
	if !ok { // a host without a configuration file
		profile = retry.Fine()
	}
	return ticket.New(ticket.Options{
		CheckCriteria: verify.CheckWith((*checkTypes)(h)), CheckRepo: checkRepo, CheckBranch: checkBranch, OwnBranch: worktree.BranchOf, AgentBranch: worktree.AgentMayName,
		Lines: verify.Commands, Verifications: h.settings.Verify.Attempts,
		Profile: profile, Reviews: cmp.Or(c.Reviews, -1), ReviewDelay: cmp.Or(c.ReviewDelay.Std(), -1), Lease: c.Lease.Std(),
		RepoURL: h.opt.Workspace, AllowUnverified: c.Unverified, Classify: h.rt.ClassifyError, Logger: h.opt.Logger, Observer: h.opt.Tickets, Learn: h.learner.Learn,
		Chain:  func(ctx context.Context) (int, []string) { return h.rt.Chain(cmp.Or(runOf(ctx), senderOf(ctx))) },
		Review: h.reviews, Approval: c.Approval == config.On, Deploy: c.Deploy == config.On,
	})
}

// checkRepo returns an error if git is not executed for the repository of a ticket.
func checkRepo(repoURL string) error {
	_, err := gitsource.Parse("repo_url", repoURL)
	return err
}

// checkBranch returns an error if the branch of a ticket would not be made.
func checkBranch(name string) error { return gitsource.CheckNewBranch("branch_name", name) }

// reviews reports whether finished work is reviewed. Without a reviewer it would wait for ever, so by
// default a sentinel has to be armed that claims it.
func (h *Host) reviews() bool {
	if when := h.settings.Tickets.Review; when != config.Auto {
		return when == config.On
	}
	list, err := h.rt.Triggers("")
	if err != nil {
		h.opt.Logger.Warn("it is not known whether a reviewer is armed, so finished work waits for one", "reason", err)
		return true
	}
	armed := map[sentinels.ID]bool{}
	for _, t := range list {
		armed[t.Sentinel] = armed[t.Sentinel] || t.Armed
	}
	all, err := h.rt.Definitions()
	if err != nil {
		h.opt.Logger.Warn("it is not known whether a reviewer is armed, so finished work waits for one", "reason", err)
		return true
	}
	return slices.ContainsFunc(all, func(s runtime.Stored) bool {
		// An agent may have removed the trigger.
		return (armed[s.ID] || !s.OfPerson()) && h.isReviewer(s.ID)
	})
}

// RunTickets ends claims of tickets that expire, and delays of their retries, until ctx
// ends. Without it they end with the next claim. It begins with removing the worktrees of
// claims that have ended.
func (h *Host) RunTickets(ctx context.Context) {
	var work sync.WaitGroup
	work.Go(func() { h.verify.Recheck(ctx) })
	work.Go(func() {
		if err := h.worktrees.Sweep(ctx); err != nil && ctx.Err() == nil {
			h.opt.Logger.Warn("worktrees of claims that have ended are not removed", "reason", err)
		}
	})
	h.tickets.Run(ctx, h.updateTickets)
	work.Wait()
}

// updateTickets executes a transaction on the documents.
func (h *Host) updateTickets(ctx context.Context, fn func(ticket.Tx) error) error {
	return h.rt.Documents().Update(ctx, func(tx *runtime.DocumentTx) error { return fn(tx) })
}

// openVerifier makes the verifier of tickets as it is configured.
func (h *Host) openVerifier() *verify.Tickets {
	c := h.settings.Verify
	for _, name := range c.Env {
		if value := h.opt.Getenv(name); value != "" {
			if err := h.redactor.Register(value); err != nil {
				h.opt.Logger.Warn("the value of a variable for checks cannot be hidden in what they write", "variable", name, "reason", err)
			}
		}
	}
	return &verify.Tickets{
		Service: h.tickets, Update: h.updateTickets,
		Verifier: verify.New(verify.Options{
			Plugins: (*checkTypes)(h),
			Confine: confine.Runner{Start: func(cmd *exec.Cmd) (confine.Tree, error) { return h.shells.StartTree(cmd) }},
			Dir:     h.userDir("verify"), SSHKey: h.sshKey(), KnownHosts: c.KnownHosts, Credential: h.forgeCredential,
			Published: func(repoURL, branch string) string { return h.worktrees.Published(repoURL, branch) }, // they are opened later
			URL:       c.URL, Env: c.Env, Read: c.Read, Timeout: c.Timeout.Std(), Getenv: h.lookup, Redact: h.redactor.String, Logger: h.opt.Logger,
			Hide: h.hostFiles().All(), Secret: h.fileRules().MatchContent, MaxSize: int64(h.settings.Worktrees.Size), Offline: c.Network == config.Closed, Require: c.Require,
		}),
	}
}

// sshKey is the file of the private key for repositories over ssh, "" for ssh's own.
func (h *Host) sshKey() string {
	return cmp.Or(h.settings.Verify.SSHKey, h.opt.Getenv("GIT_SSH_KEY_PATH"))
}

// lookup returns a variable of the environment.
func (h *Host) lookup(name string) (string, bool) {
	value := h.opt.Getenv(name)
	return value, value != ""
}
