package worktree

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
	"github.com/sentinel-runtime/sentinel/host/internal/gitsource"
	"github.com/sentinel-runtime/sentinel/internal/textcut"
)

// Rebased is what Rebase did.
type Rebased struct {
	Commit     string   `json:"commit"`
	BaseCommit string   `json:"base_commit" jsonschema:"commit of the base that the worktree stands on now"`
	Moved      bool     `json:"moved" jsonschema:"the base has commits that the worktree did not have"`
	Conflict   bool     `json:"conflict" jsonschema:"files of the worktree have conflict markers; the next commit needs them resolved"`
	Files      []string `json:"files,omitempty" jsonschema:"with conflicts; the first 1,000"`
	Truncated  bool     `json:"truncated,omitempty" jsonschema:"files does not list all of them"`
	Text       string   `json:"text,omitempty" jsonschema:"both sides of each conflict, but for files that hold secrets"`
}

// maxConflict bounds the text of conflicts, which becomes feedback.
const maxConflict = 16 << 10

// Rebase puts the commits of a worktree onto the current base. A conflict is a result: the
// worktree then stands on the new base, its files have both sides of each conflict, and
// the branch is as it was until the next commit, which must not have conflict markers.
// Until then Rebase returns the same conflict.
func (s *Service) Rebase(ctx context.Context, id string, token uint64) (out Rebased, err error) {
	err = s.change(ctx, id, token, func(t *tree) error {
		out, err = t.rebase(ctx)
		return err
	})
	return out, err
}

func (t *tree) rebase(ctx context.Context) (out Rebased, err error) {
	if t.Unresolved != nil {
		return t.Unresolved.Rebased, nil
	}
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
		if err := t.onto(ctx, base, &out); err != nil || out.Conflict {
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

// onto moves the commits since the old base onto a commit. Commits that conflict one by one
// are tried again as one: what a later commit reverts does not conflict, and an agent
// resolves each conflict once.
func (t *tree) onto(ctx context.Context, base string, out *Rebased) error {
	fork, err := t.exec(ctx, "", "merge-base", t.BaseCommit, "HEAD")
	if err != nil {
		return err
	}
	since := cmp.Or(strings.TrimSpace(fork.Out), base)
	identity, err := t.identity(ctx)
	if err != nil {
		return err
	}
	several, err := t.must(ctx, "rev-list", "rev-list", "--count", since+"..HEAD")
	if err != nil {
		return err
	}
	t.s.opt.At("rebase: begins")
	onto := []string{"rebase", "--quiet", "--no-verify", "--no-autostash", "--no-gpg-sign", "--no-fork-point",
		"--onto", base, since}
	// Git merges by the first value of this, which no later one takes back.
	if set, err := t.exec(ctx, "", "config", "--get", "pull.twohead"); err != nil {
		return err
	} else if set.Code == 0 {
		onto = append(onto, "--strategy=recursive")
	}
	a, err := t.run(ctx, identity, "", onto...)
	if err != nil || a.Code == 0 {
		return err
	}
	if several != "1" {
		if err := t.abortRebase(ctx); err != nil {
			return err
		}
		message, err := t.must(ctx, "log", "log", "-1", "--format=%B", "HEAD")
		if err != nil {
			return err
		}
		if err := t.replace(ctx, identity, "HEAD", since, message); err != nil {
			return err
		}
		t.s.opt.At("rebase: squashed")
		if a, err = t.run(ctx, identity, "", onto...); err != nil || a.Code == 0 {
			return err
		}
	}
	t.s.opt.At("rebase: stopped")
	return t.conflict(ctx, identity, base, a, out)
}

// abortRebase ends a rebase that has not ended: branch, index and files are what they were. A
// git that was killed while it wrote or removed the notes of a rebase leaves some of them, with
// which git cannot abort: then the branch is where it was, or where the rebase
// has put it, and the files follow. A rebase begins without changes, so none is lost.
func (t *tree) abortRebase(ctx context.Context) error {
	var left []string
	for _, dir := range []string{"rebase-merge", "rebase-apply"} {
		if path := filepath.Join(t.gitDir(), dir); exists(path) {
			left = append(left, path)
		}
	}
	if len(left) == 0 {
		return nil
	}
	a, err := t.exec(ctx, "", "rebase", "--abort")
	if err != nil || gitexec.Locked(a) {
		return cmp.Or(err, gitexec.Fatal("rebase", a))
	}
	if a.Code == 0 && !slices.ContainsFunc(left, exists) {
		return nil
	}
	if _, err := t.must(ctx, "symbolic-ref", "symbolic-ref", "-m", "rebase: abort", "HEAD", branchRef(t.Branch)); err != nil {
		return err
	}
	if _, err := t.must(ctx, "reset", "reset", "--quiet", "--hard", "HEAD"); err != nil {
		return err
	}
	for _, path := range left { // last, so that a crash repeats this
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// replace makes a commit with a tree and one parent the end of the branch. The files do not
// change.
func (t *tree) replace(ctx context.Context, identity []string, tree, parent, message string) error {
	made, err := t.run(ctx, identity, message, "commit-tree", "--no-gpg-sign", "-p", parent, "-F", "-", tree+"^{tree}")
	if err != nil {
		return err
	}
	if made.Code != 0 {
		return gitexec.Fatal("commit-tree", made)
	}
	_, err = t.must(ctx, "update-ref", "update-ref", branchRef(t.Branch), strings.TrimSpace(made.Out))
	return err
}

// An unresolved conflict of a rebase.
type unresolved struct {
	Rebased
	Marked string `json:"marked"`           // commit on the base whose files have the conflict markers; never published
	Placed bool   `json:"placed,omitempty"` // the worktree has these files
}

// conflict ends a rebase that has stopped with conflicts.
func (t *tree) conflict(ctx context.Context, identity []string, base string, stopped gitexec.Answer, out *Rebased) error {
	if err := t.inspectInner(ctx); err != nil {
		return err
	}
	files, err := t.must(ctx, "diff", "diff", "--name-only", "-z", "--diff-filter=U")
	if err != nil {
		return err
	}
	conflicts := strings.Split(strings.TrimRight(files, "\x00"), "\x00")
	var hidden []string
	if files != "" {
		if hidden, err = t.unseen(ctx, "rebase", conflicts, "HEAD", "REBASE_HEAD", gitsource.InWorkTree); err != nil {
			return err
		}
	}
	text, err := t.must(ctx, "diff", append([]string{"diff", "--no-ext-diff", "--no-textconv", "--no-color", "--diff-filter=U"}, without(hidden)...)...)
	if err != nil {
		return err
	}
	if _, err := t.must(ctx, "add", "add", "--all", "--", "."); err != nil {
		return err
	}
	marked, err := t.must(ctx, "write-tree", "write-tree")
	if err != nil {
		return err
	}
	if err := t.abortRebase(ctx); err != nil {
		return err
	}
	if files == "" { // it failed for another reason
		return gitexec.Fatal("rebase", stopped)
	}
	made, err := t.run(ctx, identity, "conflict", "commit-tree", "--no-gpg-sign", "-p", base, "-F", "-", marked)
	if err != nil {
		return err
	}
	if made.Code != 0 {
		return gitexec.Fatal("commit-tree", made)
	}
	out.Conflict, out.Commit = true, t.Commit
	out.Files, out.Truncated = conflicts[:min(len(conflicts), maxFiles)], len(conflicts) > maxFiles
	out.Text = strings.ToValidUTF8(textcut.Mark(gitexec.WithoutIndex(text), maxConflict), "\uFFFD")
	t.BaseCommit, t.Unresolved = base, &unresolved{Rebased: *out, Marked: strings.TrimSpace(made.Out)}
	if err := t.save(); err != nil {
		return err
	}
	t.s.opt.At("rebase: noted")
	return t.place(ctx)
}

// place puts the files with conflict markers into the worktree, once.
func (t *tree) place(ctx context.Context) error {
	if _, err := t.must(ctx, "reset", "reset", "--quiet", "--hard", t.Unresolved.Marked); err != nil {
		return err
	}
	t.Unresolved.Placed = true
	return t.save()
}

// resolve commits what is staged on the base, if no file has conflict markers any more. The
// commit with the markers is not in its history.
func (t *tree) resolve(ctx context.Context, message string) error {
	args := []string{"grep", "--cached", "--no-color", "-z", "-l", "-e", "^<<<<<<< ", "-e", "^>>>>>>> ", "--"}
	for _, f := range t.Unresolved.Files {
		args = append(args, gitexec.Literal+f)
	}
	left, err := t.exec(ctx, "", args...)
	switch {
	case err != nil:
		return err
	case left.Code > 1:
		return gitexec.Fatal("grep", left)
	case left.Code == 0:
		first, _, _ := strings.Cut(left.Out, "\x00")
		return conflict("%s still has conflict markers: write what holds of both sides, without the lines <<<<<<<, ======= and >>>>>>>", textcut.Mark(first, 200))
	}
	tree, err := t.must(ctx, "write-tree", "write-tree")
	if err != nil {
		return err
	}
	same, err := t.must(ctx, "rev-parse", "rev-parse", "--verify", t.BaseCommit+"^{tree}")
	if err != nil {
		return err
	}
	if same == tree { // the base has it all
		_, err = t.must(ctx, "update-ref", "update-ref", branchRef(t.Branch), t.BaseCommit)
		return err
	}
	identity, err := t.identity(ctx)
	if err != nil {
		return err
	}
	return t.replace(ctx, identity, tree, t.BaseCommit, message)
}
