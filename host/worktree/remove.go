package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Removed is what Remove did.
type Removed struct {
	Removed bool   `json:"removed" jsonschema:"false if there was none"`
	Branch  string `json:"branch,omitempty"`
	Commit  string `json:"commit,omitempty" jsonschema:"newest commit of the branch"`
	Saved   bool   `json:"saved,omitempty" jsonschema:"changes that were not committed are in the newest commit"`
	Ref     string `json:"ref,omitempty" jsonschema:"where the commit is, if the branch was changed by another program"`
}

// Remove removes the worktree of a ticket. What is not committed is committed to its branch
// first, unless it is for a review. A token other than 0 is that of the claim which the worktree belongs to.
func (s *Service) Remove(ctx context.Context, id string, token uint64) (out Removed, err error) {
	name := nameOf(id)
	l := s.lock(name)
	l.Lock()
	defer l.Unlock()
	t, err := s.read(name)
	if errors.Is(err, fs.ErrNotExist) {
		return out, s.removed.Remove(s.dir(name)) // what a crash left of an Add or a Remove
	}
	if err != nil {
		return out, err
	}
	if t.Ticket != id || token != 0 && t.Token != token {
		return out, conflict("the worktree is that of ticket %s, claim %d", t.Ticket, t.Token)
	}
	return t.remove(ctx)
}

func (t *tree) remove(ctx context.Context) (out Removed, err error) {
	if err := t.repair(ctx); err != nil {
		return out, err
	}
	out.Branch = t.Branch
	if t.ReadOnly {
		out.Commit = t.Commit
	} else if err := t.keep(ctx, &out); err != nil {
		return out, fmt.Errorf("worktree of ticket %s is not removed, since its work cannot be kept: %w", t.Ticket, err)
	}
	t.s.opt.At("remove: kept")
	// Without its record the folder is one that a crash left, which all steps ignore.
	if err := os.Remove(t.s.file(t.name)); err != nil {
		return out, err
	}
	t.s.opt.At("remove: begun")
	out.Removed = true
	return out, t.s.removed.Remove(t.s.dir(t.name))
}

// keep commits and publishes what a worktree has that its repository does not.
func (t *tree) keep(ctx context.Context, out *Removed) error {
	if err := t.stage(ctx); err != nil {
		return err
	}
	changed, err := t.staged(ctx)
	switch {
	case err != nil:
		return err
	case t.Unresolved != nil && !changed: // the branch has the work, and not the conflict markers
		out.Commit = t.Commit
		return nil
	case changed:
		if err := t.record(ctx, fmt.Sprintf("%s: unfinished work of claim %d\n", t.Ticket, t.Token)); err != nil {
			return err
		}
		out.Saved = true
	}
	if out.Commit, err = t.must(ctx, "rev-parse", "rev-parse", "--verify", "HEAD^{commit}"); err != nil {
		return err
	}
	head, err := t.exec(ctx, "", "symbolic-ref", "--quiet", "HEAD")
	if err != nil {
		return err
	}
	if strings.TrimSpace(head.Out) == branchRef(t.Branch) {
		if err = t.publishTip(ctx, out.Commit); err == nil || abi.CodeOf(err) != abi.Conflict {
			return err
		}
	}
	// The branch is the user's now, or the worktree is on another one.
	out.Ref = t.attempt(t.Token)
	was, err := t.source(ctx, "rev-parse", "--verify", "--quiet", out.Ref)
	if err != nil {
		return err
	}
	return t.publish(ctx, update{out.Ref, was, out.Commit})
}

// Sweep removes the worktrees whose claims have ended, and what a crash left. The work of
// each is kept as [Service.Remove] keeps it; one whose work cannot be kept stays, and is
// logged.
func (s *Service) Sweep(ctx context.Context) error {
	if s.git.Program == "" {
		return nil
	}
	for _, name := range s.names() {
		if err := s.sweep(ctx, name); err != nil {
			return err
		}
	}
	if err := s.mirrors.Sweep(); err != nil {
		s.opt.Logger.Warn("unused copies of repositories are not removed", "reason", err)
	}
	return nil
}

func (s *Service) sweep(ctx context.Context, name string) error {
	l := s.lock(name)
	if !l.TryLock() {
		return nil // a step is at work on it
	}
	defer l.Unlock()
	t, err := s.read(name)
	if errors.Is(err, fs.ErrNotExist) {
		return s.removed.Remove(s.dir(name))
	}
	if err != nil {
		s.opt.Logger.Warn("a worktree is not removed", "reason", err)
		return nil
	}
	ticket, err := s.opt.Ticket(ctx, t.Ticket, 0)
	if err != nil && abi.CodeOf(err) != abi.NotFound {
		return err
	}
	if err == nil && ticket.Token == t.Token {
		return nil
	}
	out, err := t.remove(ctx)
	if err != nil {
		s.opt.Logger.Warn("a worktree is not removed", "ticket", t.Ticket, "reason", err)
		return ctx.Err()
	}
	s.opt.Logger.Info("the worktree of a claim that has ended is removed", "ticket", t.Ticket, "claim", t.Token, "branch", out.Branch, "commit", out.Commit, "saved", out.Saved)
	return nil
}
