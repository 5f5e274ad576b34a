package worktree

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
	"github.com/sentinel-runtime/sentinel/host/internal/gitlfs"
	"github.com/sentinel-runtime/sentinel/host/internal/gitsource"
	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A File is one that was changed.
type File struct {
	Path   string `json:"path"`
	Change string `json:"change" jsonschema:"created, modified or deleted"`
}

// Bounds of answers.
const (
	maxFiles   = 1000
	maxBinary  = 100
	maxText    = 64 << 10
	maxMessage = 16 << 10
)

// Committed is what Commit did.
type Committed struct {
	Commit  string `json:"commit"`
	Branch  string `json:"branch"`
	Changed bool   `json:"changed" jsonschema:"false if there was nothing new"`
	Files   []File `json:"files" jsonschema:"changed since the last commit that was reported, at most 1000"`
	More    int    `json:"more,omitempty" jsonschema:"further files"`
}

// Commit commits all changes and publishes them as the branch. A call that is repeated with
// its key after a crash returns what the first one did.
func (s *Service) Commit(ctx context.Context, id string, token uint64, message, key string) (out Committed, err error) {
	if strings.TrimSpace(message) == "" || len(message) > maxMessage || strings.ContainsRune(message, 0) {
		return out, &abi.Error{Code: abi.BadFields, Permanent: true, Field: "message", Message: fmt.Sprintf("message: want 1 to %d bytes of text", maxMessage)}
	}
	err = s.change(ctx, id, token, func(t *tree) error {
		out, err = t.commit(ctx, message, key)
		return err
	})
	return out, err
}

func (t *tree) commit(ctx context.Context, message, key string) (out Committed, err error) {
	if err := t.s.fits(t.name); err != nil {
		return out, err
	}
	head, err := t.must(ctx, "symbolic-ref", "symbolic-ref", "--quiet", "HEAD")
	if err != nil || head != branchRef(t.Branch) {
		return out, conflict("worktree %s is on %s, not on its branch %s: switch back to it", t.Ticket, cmp.Or(strings.TrimPrefix(head, "refs/heads/"), "no branch"), t.Branch)
	}
	if key == "" || key != t.Key { // durable with the commit: before, Commit is what it was
		t.From, t.Key = t.Commit, key
	}
	if err := t.stage(ctx); err != nil {
		return out, err
	}
	if t.Unresolved != nil {
		err = t.resolve(ctx, message)
	} else if changed, e := t.staged(ctx); e != nil {
		err = e
	} else if changed {
		err = t.record(ctx, message)
	}
	if err != nil {
		return out, err
	}
	t.s.opt.At("commit: made")
	if out.Commit, err = t.report(ctx); err != nil {
		return out, err
	}
	out.Branch, out.Changed = t.Branch, out.Commit != t.From
	out.Files, out.More, err = t.files(ctx, t.From, out.Commit)
	return out, err
}

// staged reports whether the index differs from the newest commit.
func (t *tree) staged(ctx context.Context) (bool, error) {
	a, err := t.exec(ctx, "", "diff", "--cached", "--quiet", "--no-ext-diff", "--no-textconv", "HEAD")
	if err == nil && a.Code > 1 {
		err = gitexec.Fatal("diff", a)
	}
	return a.Code == 1, err
}

// add are the arguments of git for putting all files into the index.
var add = []string{"-c", "advice.addEmbeddedRepo=false", "add", "--all"}

// inspectInner refuses what git would execute when it looks for changes: submodules whose own
// configuration names programs.
func (t *tree) inspectInner(ctx context.Context) error {
	git := t.s.git
	git.Env = []string{"GIT_DIR=" + t.gitDir(), "GIT_WORK_TREE=" + t.Path}
	folder, key, err := git.InnerFilter(ctx, t.Path, func(value string) bool { return slices.Contains(gitlfs.Filters, value) })
	if err == nil && folder != "" {
		err = &abi.Error{Code: abi.Denied, Permanent: true, Message: fmt.Sprintf("the repository in %q has the setting %s, which names a program to run", textcut.Mark(folder, 200), key),
			Hint: "remove the setting or the folder"}
	}
	return err
}

// stage puts all files into the index. A folder that has become a repository of its own is
// an error: a commit would have none of its files.
func (t *tree) stage(ctx context.Context) error {
	if err := t.inspectInner(ctx); err != nil {
		return err
	}
	a, err := t.exec(ctx, "", append(add[:len(add):len(add)], "--", ".")...)
	if err != nil {
		return err
	}
	if inner := emptyRepositories(a); len(inner) > 0 {
		return embedded(inner[0])
	}
	if a.Code != 0 {
		return gitexec.Fatal("add", a)
	}
	inner, err := t.unstageRepositories(ctx)
	if err != nil {
		return err
	}
	if len(inner) > 0 {
		return embedded(inner[0])
	}
	filled, err := t.filledSubmodules(ctx)
	if err != nil {
		return err
	}
	if len(filled) > 0 {
		return inSubmodule(filled[0])
	}
	return t.wantFilter(ctx)
}

// embedded is the error of a folder that has become a repository of its own.
func embedded(name string) error {
	name = textcut.Mark(name, 200)
	return conflict("folder %s is a git repository of its own, so that its files would not be committed: remove %s/.git", name, name)
}

// unstageRepositories takes the folders out of the index that have become repositories of
// their own, and returns them.
func (t *tree) unstageRepositories(ctx context.Context) (inner []string, err error) {
	raw, err := t.must(ctx, "diff", "diff", "--cached", "--raw", "-z", "--no-renames", "--no-ext-diff", "--ignore-submodules=none", "--diff-filter=AT", "HEAD")
	if err != nil {
		return nil, err
	}
	for fields := strings.Split(raw, "\x00"); len(fields) > 1; fields = fields[2:] {
		if strings.HasPrefix(fields[0], ":000000 160000") || strings.HasPrefix(fields[0], ":100644 160000") {
			if _, err := t.must(ctx, "reset", "reset", "--quiet", "--", gitexec.Literal+fields[1]); err != nil {
				return nil, err
			}
			inner = append(inner, fields[1])
		}
	}
	return inner, nil
}

// record commits what is staged, under the user's name or that of the program.
func (t *tree) record(ctx context.Context, message string) error {
	identity, err := t.identity(ctx)
	if err != nil {
		return err
	}
	a, err := t.run(ctx, identity, message, "commit", "--quiet", "--no-verify", "--no-gpg-sign", "--cleanup=whitespace", "-F", "-")
	if err == nil && a.Code != 0 {
		err = gitexec.Fatal("commit", a)
	}
	return err
}

// report publishes the branch and makes its commit the one that was reported last.
func (t *tree) report(ctx context.Context) (string, error) {
	tip, err := t.must(ctx, "rev-parse", "rev-parse", "--verify", "HEAD^{commit}")
	if err != nil {
		return "", err
	}
	if err := t.publishTip(ctx, tip); err != nil {
		return "", err
	}
	t.s.opt.At("published")
	t.Commit, t.Unresolved = tip, nil
	return tip, t.save()
}

// publishTip publishes a commit as the branch. What the branch must be is what this
// worktree published last: a crash may have been behind that.
func (t *tree) publishTip(ctx context.Context, tip string) error {
	ours, err := t.source(ctx, "rev-parse", "--verify", "--quiet", t.ref("branches"))
	if err != nil || ours == tip {
		return err
	}
	return t.publish(ctx, update{branchRef(t.Branch), ours, tip}, update{t.ref("branches"), ours, tip})
}

// files lists what is different between two commits; to "" is the index.
func (t *tree) files(ctx context.Context, from, to string) (files []File, more int, err error) {
	files = []File{}
	args := []string{"diff", "--name-status", "-z", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none"}
	if to == "" {
		args = append(args, "--cached", from)
	} else {
		args = append(args, from, to)
	}
	text, err := t.must(ctx, "diff", append(args, "--")...)
	fields := strings.Split(text, "\x00")
	for ; len(fields) > 1; fields = fields[2:] {
		if len(files) == maxFiles {
			more++
			continue
		}
		change := map[string]string{"A": "created", "D": "deleted"}[fields[0]]
		files = append(files, File{fields[1], cmp.Or(change, "modified")})
	}
	return files, more, err
}

// Diff is what a worktree has changed since its base.
type Diff struct {
	Base      string   `json:"base_commit"`
	Files     []File   `json:"files"`
	More      int      `json:"more,omitempty" jsonschema:"further files"`
	Diff      string   `json:"diff" jsonschema:"the patch, at most 64 KiB"`
	Truncated bool     `json:"truncated,omitempty"`
	Hidden    []string `json:"hidden,omitempty" jsonschema:"files whose changes the patch leaves out, since they hold secrets"`
	Binary    []string `json:"binary,omitempty" jsonschema:"files whose changes the patch does not show, since git takes them for binary, by a zero byte in them or by .gitattributes; the first 100"`
}

// MaxDiff is about what a [Service.Diff] holds, in bytes.
const MaxDiff = gitexec.MaxOut

// Diff returns what the worktree has changed, with what is not committed; of one for a review
// what its commit has changed. The patch leaves out the files of [Options.Hides]; if more
// files have changed than the answer lists, it is empty and truncated.
func (s *Service) Diff(ctx context.Context, id string, token uint64) (out Diff, err error) {
	err = s.with(ctx, id, token, func(t *tree) error {
		to, what, side := "", []string{"--cached", t.BaseCommit}, gitsource.InIndex
		if t.ReadOnly {
			to, what, side = t.Commit, []string{t.BaseCommit, t.Commit}, t.Commit
		} else if err := t.stage(ctx); err != nil {
			return err
		}
		out.Base = t.BaseCommit
		if out.Files, out.More, err = t.files(ctx, t.BaseCommit, to); err != nil {
			return err
		}
		if s.opt.Hides != nil && out.More > 0 { // some of the rest may have to be hidden
			out.Truncated = true
			return nil
		}
		names := make([]string, 0, len(out.Files))
		for _, f := range out.Files {
			names = append(names, f.Path)
		}
		if out.Hidden, err = t.unseen(ctx, "diff", names, t.BaseCommit, side); err != nil {
			return err
		}
		rest := append(what, without(out.Hidden)...)
		counts, err := t.must(ctx, "diff", append([]string{"diff", "--numstat", "-z", "--no-ext-diff", "--no-textconv", "--no-renames", "--ignore-submodules=none"}, rest...)...)
		if err != nil {
			return err
		}
		out.Binary = binaryOf(counts)
		a, err := t.exec(ctx, "", append([]string{"diff", "--no-ext-diff", "--no-textconv", "--no-renames", "--no-color", "--ignore-submodules=none"}, rest...)...)
		if err != nil {
			return err
		}
		if a.Code > 1 {
			return gitexec.Fatal("diff", a)
		}
		text := a.Out
		if s.opt.Hides != nil {
			text = gitexec.WithoutIndex(text)
		}
		out.Diff, out.Truncated = text, a.Cut || len(text) > maxText
		if out.Truncated {
			out.Diff = textcut.Mark(text, maxText)
		}
		out.Diff = strings.ToValidUTF8(out.Diff, "\uFFFD")
		return nil
	})
	return out, err
}

// binaryOf returns the files that git takes for binary in its output of --numstat -z.
func binaryOf(counts string) (paths []string) {
	for entry := range strings.SplitSeq(counts, "\x00") {
		if path, binary := strings.CutPrefix(entry, "-\t-\t"); binary && len(paths) < maxBinary {
			paths = append(paths, strings.ToValidUTF8(path, "\uFFFD"))
		}
	}
	return paths
}

// unseen returns those of names that models do not see, in one of the sides.
func (t *tree) unseen(ctx context.Context, operation string, names []string, sides ...string) ([]string, error) {
	hides, sealed := t.s.opt.Hides, t.s.opt.Sealed
	if hides == nil {
		return nil, nil
	}
	if sealed == nil {
		sides = nil
	}
	git := func(ctx context.Context, args ...string) (gitexec.Answer, error) { return t.exec(ctx, "", args...) }
	return gitsource.Unseen{Name: hides, Content: sealed, Git: git, Operation: operation}.Of(ctx, names, sides...)
}

// without returns the arguments of git for all paths but some.
func without(paths []string) []string {
	args := []string{"--", "."}
	for _, p := range paths {
		args = append(args, ":(exclude,literal)"+p)
	}
	return args
}
