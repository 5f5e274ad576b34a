package worktree

import (
	"cmp"
	"context"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
	"github.com/sentinel-runtime/sentinel/host/internal/gitsource"
)

// Rebased is what Rebase did.
type Rebased struct {
	Commit     string   `json:"commit"`
	BaseCommit string   `json:"base_commit" jsonschema:"commit of the base that the worktree stands on now"`
	Moved      bool     `json:"moved" jsonschema:"the base has commits that the worktree did not have"`
	Conflict   bool     `json:"conflict" jsonschema:"the worktree is as it was: its work and the base change the same lines"`
	Files      []string `json:"files,omitempty" jsonschema:"with conflicts"`
	Text       string   `json:"text,omitempty" jsonschema:"both sides of each conflict"`
}

// maxConflict bounds the text of conflicts, which becomes feedback.
const maxConflict = 16 << 10

// Rebase puts the commits of a worktree onto the current base. A conflict is a result, and
// leaves the worktree as it was.
func (s *Service) Rebase(ctx context.Context, id string, token uint64) (out Rebased, err error) {
	err = s.with(ctx, id, token, func(t *tree) error {
		out, err = t.rebase(ctx)
		return err
	})
	return out, err
}

func (t *tree) rebase(ctx context.Context) (out Rebased, err error) {
	if dirty, err := t.must(ctx, "status", "status", "--porcelain", "--untracked-files=normal", "--ignore-submodules=all"); err != nil {
		return out, err
	} else if dirty != "" {
		return out, conflict("worktree %s has changes that are not committed: worktree/commit them first", t.Ticket)
	}
	repo, err := gitsource.Parse("repo", t.RepoURL)
	if err != nil {
		return out, err
	}
	if repo.Local == "" {
		if _, err := t.s.mirrors.Fetch(ctx, repo.URL, "base", t.Base); err != nil {
			return out, err
		}
	}
	a, err := t.exec(ctx, "", "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--upload-pack="+t.s.git.Service("upload-pack"),
		"--", t.Source, "+"+branchRef(t.Base)+":refs/sentinel/base")
	if err != nil {
		return out, err
	}
	if a.Code != 0 {
		return out, gitsource.Failed("fetch", gitsource.Repository{URL: t.RepoURL}, "base", t.Base, a)
	}
	base, err := t.must(ctx, "rev-parse", "rev-parse", "--verify", "refs/sentinel/base^{commit}")
	if err != nil {
		return out, err
	}
	out.BaseCommit = base
	a, err = t.exec(ctx, "", "merge-base", "--is-ancestor", base, "HEAD")
	switch {
	case err != nil:
		return out, err
	case a.Code > 1:
		return out, gitexec.Fatal("merge-base", a)
	case a.Code == 1:
		out.Moved = true
		if done, err := t.onto(ctx, base, &out); err != nil || !done {
			out.Commit, out.BaseCommit = t.Commit, t.BaseCommit
			return out, err
		}
	default:
		out.Moved = base != t.BaseCommit
	}
	t.s.opt.At("rebase: done")
	t.BaseCommit = base
	out.Commit, err = t.report(ctx)
	return out, err
}

// onto moves the commits since the old base onto a commit, unless they conflict.
func (t *tree) onto(ctx context.Context, base string, out *Rebased) (done bool, err error) {
	fork, err := t.exec(ctx, "", "merge-base", t.BaseCommit, "HEAD")
	if err != nil {
		return false, err
	}
	since := strings.TrimSpace(fork.Out)
	identity, err := t.identity(ctx)
	if err != nil {
		return false, err
	}
	t.s.opt.At("rebase: begins")
	a, err := t.run(ctx, identity, "", "-c", "rebase.updateRefs=false", "-c", "rerere.enabled=false", "rebase", "--quiet", "--no-verify", "--no-autostash", "--no-gpg-sign", "--no-fork-point",
		"--onto", base, cmp.Or(since, base))
	if err != nil || a.Code == 0 {
		return err == nil, err
	}
	t.s.opt.At("rebase: stopped")
	unmerged, err := t.must(ctx, "diff", "diff", "--name-only", "-z", "--diff-filter=U")
	if err != nil {
		return false, err
	}
	text, err := t.must(ctx, "diff", "diff", "--no-ext-diff", "--no-textconv", "--no-color", "--diff-filter=U")
	if err != nil {
		return false, err
	}
	if _, err := t.must(ctx, "rebase", "rebase", "--abort"); err != nil {
		return false, err
	}
	if unmerged == "" { // it failed for another reason
		return false, gitexec.Fatal("rebase", a)
	}
	out.Conflict = true
	out.Files = strings.Split(strings.TrimRight(unmerged, "\x00"), "\x00")
	out.Files = out.Files[:min(len(out.Files), maxFiles)]
	out.Text = strings.ToValidUTF8(gitexec.Clip(text, maxConflict), "\uFFFD")
	return false, nil
}
