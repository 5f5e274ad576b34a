package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/trash"
	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Removed is what Remove did.
type Removed struct {
	Removed bool   `json:"removed" jsonschema:"false if there was none"`
	Branch  string `json:"branch,omitempty"`
	Commit  string `json:"commit,omitempty" jsonschema:"newest commit of the branch"`
	Saved   bool   `json:"saved,omitempty" jsonschema:"changes that were not committed are in the newest commit"`
	Ref     string `json:"ref,omitempty" jsonschema:"where the commit is, if the branch was verified, or changed by another program"`
	// LeftOut has a line for each file or folder whose changes are in no commit.
	LeftOut []string `json:"left_out,omitempty" jsonschema:"what could not be committed, and why"`
	Kept    string   `json:"kept,omitempty" jsonschema:"folder that has all files of the worktree, if something could not be committed"`
}

// A resolve says which worktrees are removed although not all of their work can be committed.
// Files that cannot be read never keep one from being removed. What is in no commit is set
// aside by [Service.setAside].
type resolve int

const (
	unlessFailed  resolve = iota // none
	unlessRetried                // those whose commit would fail again
	always
)

// Remove removes the worktree of a ticket. What is not committed is committed to its branch
// first, unless it is for a review; files that cannot be read are left out, named and kept. A
// token other than 0 is that of the claim which the worktree belongs to.
func (s *Service) Remove(ctx context.Context, id string, token uint64) (Removed, error) {
	return s.end(ctx, id, token, unlessFailed)
}

// Discard is [Service.Remove] also for a worktree whose work cannot be committed, or whose
// record is damaged. The result names what is in no commit.
func (s *Service) Discard(ctx context.Context, id string, token uint64) (Removed, error) {
	return s.end(ctx, id, token, always)
}

func (s *Service) end(ctx context.Context, id string, token uint64, how resolve) (out Removed, err error) {
	name := s.nameOf(id)
	l := s.lock(name)
	l.Lock()
	defer l.Unlock()
	t, err := s.read(name)
	if errors.Is(err, fs.ErrNotExist) {
		return out, s.removed.Remove(s.dir(name)) // what a crash left of an Add or a Remove
	}
	if err != nil && how == always {
		out.LeftOut = []string{reason(err)}
		return out, s.setAside(name, &out)
	}
	if err != nil {
		return out, err
	}
	if t.Ticket != id || token != 0 && t.Token != token {
		return out, conflict("the worktree is that of ticket %s, claim %d", t.Ticket, t.Token)
	}
	return t.remove(ctx, how)
}

func (t *tree) remove(ctx context.Context, how resolve) (out Removed, err error) {
	out.Branch = t.Branch
	if t.ReadOnly {
		out.Commit = t.Commit
	} else {
		err = t.step(ctx, func() error { return t.keep(ctx, &out, how) })
	}
	if err != nil {
		e := abi.As(err)
		later := e != nil && !e.Permanent && (e.Code == abi.Unavailable || e.Code == abi.Conflict)
		if how == unlessFailed || how == unlessRetried && later || ctx.Err() != nil {
			return out, t.notRemoved(err)
		}
		out.LeftOut = append(out.LeftOut, reason(err))
	}
	t.s.opt.At("remove: kept")
	if len(out.LeftOut) > 0 {
		return out, t.s.setAside(t.name, &out)
	}
	// Without its record the folder is one that a crash left, which all steps ignore.
	if err := os.Remove(t.s.file(t.name)); err != nil {
		return out, err
	}
	t.s.opt.At("remove: begun")
	out.Removed = true
	return out, t.s.removed.Remove(t.s.dir(t.name))
}

// notRemoved is the error of a worktree that stays because of err.
func (t *tree) notRemoved(err error) error {
	own := abi.Error{Code: abi.Internal, Message: err.Error()}
	if known := abi.As(err); known != nil {
		own = *known
	}
	own.Message = fmt.Sprintf("worktree of ticket %s is not removed, since its work cannot be kept: %s", t.Ticket, own.Message)
	if own.Hint != "" {
		own.Hint += "; "
	}
	own.Hint += "a person removes it with force of worktree/remove, which keeps its files"
	return &own
}

// reason is a line of [Removed.LeftOut] about all changes.
func reason(err error) string {
	return "changes since the newest commit: " + textcut.Mark(err.Error(), 500)
}

// maxAside is how many worktrees are kept that were set aside. Together they have at most
// the bytes that worktrees may have.
const maxAside = 16

// setAside removes a worktree whose work is not committed in whole: it is renamed, so that a
// person finds it, and the oldest ones above the limits are deleted.
func (s *Service) setAside(name string, out *Removed) error {
	dir := filepath.Join(s.opt.Dir, "kept")
	to := filepath.Join(dir, time.Now().UTC().Format("20060102T150405.000000Z")+"-"+name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := trash.Rename(s.dir(name), to); err != nil {
		return err
	}
	out.Removed, out.Kept = true, to
	s.opt.Logger.Warn("a worktree is removed whose work is not committed completely; its files are kept", "worktree", name, "left_out", out.LeftOut, "path", to)
	entries, err := os.ReadDir(dir) // oldest first, by their names
	var all int64
	for i := len(entries) - 1; i >= 0; i-- {
		path := filepath.Join(dir, entries[i].Name())
		all += size(path)
		if newer := len(entries) - 1 - i; newer == 0 || newer < maxAside && all <= s.opt.Bytes {
			continue
		}
		s.opt.Logger.Warn("a worktree that was kept is deleted, since others have taken its room", "path", path)
		err = errors.Join(err, s.removed.Remove(path))
	}
	if err != nil {
		s.opt.Logger.Warn("worktrees that were kept are not removed", "error", err)
	}
	return nil
}

// keep commits and publishes what a worktree has that its repository does not.
func (t *tree) keep(ctx context.Context, out *Removed, how resolve) (err error) {
	if out.LeftOut, err = t.stageReadable(ctx, how); err != nil {
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
	verified, err := t.isVerified(ctx)
	if err != nil {
		return err
	}
	if strings.TrimSpace(head.Out) == branchRef(t.Branch) && (!verified || out.Commit == t.Commit) {
		if err = t.publishTip(ctx, out.Commit); err == nil || abi.CodeOf(err) != abi.Conflict {
			return err
		}
	}
	// The branch is the user's now or stays at the commit that was verified, or the worktree is on
	// another one.
	out.Ref = t.attempt(t.Token)
	was, err := t.source(ctx, "rev-parse", "--verify", "--quiet", out.Ref)
	if err != nil {
		return err
	}
	return t.publish(ctx, update{out.Ref, was, out.Commit})
}

// isVerified reports whether the branch is at a commit for which the verification has passed.
func (t *tree) isVerified(ctx context.Context) (bool, error) {
	ticket, err := t.s.opt.Ticket(ctx, t.Ticket, 0)
	if abi.CodeOf(err) == abi.NotFound {
		return false, nil
	}
	return err == nil && ticket.Verified == t.Commit, err
}

// Sweep removes the worktrees whose claims have ended, and what a crash left. The work of
// each is kept as [Service.Remove] keeps it, or set aside if it cannot be committed. One that
// is in use by another git stays until later, and is logged.
func (s *Service) Sweep(ctx context.Context) error {
	if s.git.Program == "" {
		return nil
	}
	if err := s.sweepAll(ctx, unlessRetried); err != nil {
		return err
	}
	if err := s.mirrors.Sweep(); err != nil {
		s.opt.Logger.Warn("unused copies of repositories are not removed", "reason", err)
	}
	return nil
}

func (s *Service) sweepAll(ctx context.Context, how resolve) error {
	for _, name := range s.names() {
		if err := s.sweep(ctx, name, how); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) sweep(ctx context.Context, name string, how resolve) error {
	l := s.lock(name)
	if !l.TryLock() {
		return nil // a step is at work on it
	}
	defer l.Unlock()
	t, err := s.read(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := s.removed.Remove(s.dir(name)); err != nil {
			s.opt.Logger.Warn("what is left of a worktree is not removed", "worktree", name, "reason", err)
		}
		return nil
	case err != nil: // no step can use it
		why := reason(err)
		if errors.Is(err, errOtherStore) {
			why = err.Error()
		}
		if err := s.setAside(name, &Removed{LeftOut: []string{why}}); err != nil {
			s.opt.Logger.Warn("a worktree is not removed", "worktree", name, "reason", err)
		}
		return nil
	}
	ticket, err := s.opt.Ticket(ctx, t.Ticket, 0)
	if err != nil && abi.CodeOf(err) != abi.NotFound {
		return err
	}
	if err == nil && ticket.Token == t.Token {
		return nil
	}
	out, err := t.remove(ctx, how)
	if err != nil {
		s.opt.Logger.Warn("a worktree is not removed", "ticket", t.Ticket, "reason", err)
		return ctx.Err()
	}
	s.opt.Logger.Info("the worktree of a claim that has ended is removed", "ticket", t.Ticket, "claim", t.Token, "branch", out.Branch, "commit", out.Commit, "saved", out.Saved, "left_out", len(out.LeftOut))
	return nil
}
