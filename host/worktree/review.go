package worktree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/sentinel-runtime/sentinel/host/internal/gitsource"
	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Reviewed is a worktree for reading.
type Reviewed struct {
	Path         string `json:"path" jsonschema:"folder with the files, to be the workspace of a run"`
	Commit       string `json:"commit" jsonschema:"that was verified"`
	Branch       string `json:"branch"`
	BranchCommit string `json:"branch_commit,omitempty" jsonschema:"newest commit of the branch now; missing if the branch is gone"`
	Moved        bool   `json:"moved" jsonschema:"the branch, or what was verified last, is another commit than that of this worktree"`
}

// commitName is the name of a commit as the verifier has it.
var commitName = lazyregexp.New(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// Review makes a worktree for reading, or finds it: the files of the commit of a claimed
// ticket that was verified, whatever the branch is now. It is on no branch; nothing is
// committed, pushed or kept of it, and Diff compares the commit with where it left the base.
// A repeated call returns the same files, and whether the branch has moved since.
func (s *Service) Review(ctx context.Context, id string, token uint64) (out Reviewed, err error) {
	ticket, err := s.ticket(ctx, id, token)
	if err != nil {
		return out, err
	}
	if !commitName.MatchString(ticket.Verified) {
		return out, &abi.Error{Code: abi.Conflict, Permanent: true, Field: "ticket", Message: fmt.Sprintf("ticket %s has no commit that was verified", id), Hint: "verify/run its branch first"}
	}
	if err := s.Sweep(ctx); err != nil {
		return out, err
	}
	t := &tree{s: s, name: s.nameOf(id)}
	l := s.lock(t.name)
	l.Lock()
	defer l.Unlock()
	switch old, err := s.read(t.name); {
	case err == nil && old.Ticket == id && old.Token == ticket.Token && old.ReadOnly:
		err = old.step(ctx, func() error {
			out, err = old.reviewed(ctx, ticket, true)
			return err
		})
		return out, err
	case err == nil:
		return out, conflict("ticket %s has a worktree for work on it: worktree/remove it first", old.Ticket)
	case !errors.Is(err, fs.ErrNotExist):
		return out, err
	}
	t.Ticket, t.Store, t.Token = id, s.opt.Store, ticket.Token
	t.RepoURL, t.Base, t.Branch = ticket.RepoURL, ticket.Base, cmp.Or(ticket.Branch, BranchOf(t.Ticket))
	t.ReadOnly, t.Commit, t.From = true, ticket.Verified, ticket.Verified
	if err := t.create(ctx, "review", func() error { return t.checkout(ctx) }); err != nil {
		return out, err
	}
	return t.reviewed(ctx, ticket, false)
}

// checkout makes a clone with the commit checked out, on no branch.
func (t *tree) checkout(ctx context.Context) error {
	if err := t.fetchBranch(ctx); err != nil {
		return err
	}
	have, err := t.source(ctx, "rev-parse", "--verify", "--quiet", t.Commit+"^{commit}")
	if err != nil {
		return err
	}
	if have == "" {
		return &abi.Error{Code: abi.NotFound, Permanent: true, Field: "ticket", Message: fmt.Sprintf("commit %.12s of ticket %s, which was verified, is not in %s any more", t.Commit, t.Ticket, t.RepoURL), Hint: "verify/run its branch again"}
	}
	if err := t.borrow(ctx); err != nil {
		return err
	}
	if err := t.checkOut(ctx, "--detach", t.Commit); err != nil {
		return err
	}
	// Work that shares nothing with the base is compared with all of it.
	a, err := t.exec(ctx, "", "merge-base", t.BaseCommit, t.Commit)
	if err == nil && a.Code == 0 {
		t.BaseCommit = a.Out[:len(t.Commit)]
	}
	return err
}

// tip is where the newest commit of the branch is, of a repository on another machine.
func (t *tree) tip() string { return t.ref("review") }

// fetchBranch fetches the branch of a repository on another machine: an agent may have
// pushed it that used no worktree of this service. A branch that was not pushed is as it
// was published here.
func (t *tree) fetchBranch(ctx context.Context) error {
	repo, err := gitsource.Parse("repo", t.RepoURL)
	if err != nil || repo.Local != "" {
		return err
	}
	_, err = t.s.mirrors.FetchTo(ctx, repo.URL, "branch", t.Branch, t.tip())
	if abi.CodeOf(err) == abi.NotFound {
		_, err = t.source(ctx, "update-ref", "-d", t.tip())
	}
	return err
}

// reviewed describes a worktree for reading, with the branch as it is now.
func (t *tree) reviewed(ctx context.Context, ticket Ticket, existed bool) (out Reviewed, err error) {
	out = Reviewed{Path: t.Path, Commit: t.Commit, Branch: t.Branch}
	if existed {
		if err := t.fetchBranch(ctx); err != nil {
			return out, err
		}
	}
	for _, ref := range []string{t.tip(), branchRef(t.Branch)} {
		if out.BranchCommit, err = t.source(ctx, "rev-parse", "--verify", "--quiet", ref+"^{commit}"); err != nil || out.BranchCommit != "" {
			break
		}
	}
	out.Moved = out.BranchCommit != t.Commit || ticket.Verified != t.Commit
	return out, err
}
