package git

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
	"github.com/sentinel-runtime/sentinel/internal/textcut"
)

// add stages files. It needs paths: staging everything must be said.
func (r *repository) add(ctx context.Context, in request, out *Result) error {
	if len(in.Paths) == 0 {
		return badField("paths", "", `is missing: name files, or "." for all`)
	}
	if err := r.inspectInner(ctx); err != nil {
		return err
	}
	if _, err := r.must(ctx, pathspec([]string{"add"}, in.Paths)...); err != nil {
		return err
	}
	text, err := r.must(ctx, "diff", "--cached", "--numstat", "-z", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty")
	if err != nil {
		return err
	}
	out.Files, _, _ = readNumstat(text)
	out.Output = fmt.Sprintf("%d files staged", len(out.Files))
	if len(out.Files) > maxFiles {
		out.Files, out.Truncated = out.Files[:maxFiles], true
	}
	return nil
}

// commit commits what is staged, with All also the changes of known files,
// with paths only those. Nothing to commit is no failure.
func (r *repository) commit(ctx context.Context, in request, out *Result) error {
	if strings.TrimSpace(in.Message) == "" {
		return badField("message", "", "is missing")
	}
	committed := false
	out.Committed = &committed
	err := r.inspectInner(ctx)
	if err != nil {
		return err
	}
	if out.Branch, out.Hash, err = r.head(ctx); err != nil {
		return err
	}
	something, err := r.anything(ctx, in, out.Hash)
	if err != nil {
		return err
	}
	if !something {
		out.Output = "nothing to commit"
		return nil
	}
	args := []string{"commit", "--quiet", "--no-verify", "--no-gpg-sign", "--cleanup=whitespace", "-F", "-"}
	if in.All {
		args = append(args, "--all")
	}
	if len(in.Paths) > 0 {
		args = pathspec(append(args, "--only"), in.Paths)
	}
	identity, err := r.identity(ctx)
	if err != nil {
		return err
	}
	a, err := r.g.Exec(ctx, r.dir, r.ssh, in.Message, append(identity, args...)...)
	if err != nil {
		return err
	}
	if a.Code != 0 {
		return gitexec.Fatal(r.operation, a)
	}
	committed = true
	if out.Branch, out.Hash, err = r.head(ctx); err != nil {
		return err
	}
	if out.Author, err = r.line(ctx, "log", "-1", "--format=%an <%ae>"); err != nil {
		return err
	}
	subject, _, _ := strings.Cut(strings.TrimSpace(in.Message), "\n")
	out.Output = fmt.Sprintf("%.10s %s", out.Hash, textcut.Mark(subject, 400))
	return nil
}

// anything reports whether a commit would hold something.
func (r *repository) anything(ctx context.Context, in request, head string) (bool, error) {
	args := []string{"diff", "--quiet", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty"}
	switch {
	case (in.All || len(in.Paths) > 0) && head != "":
		args = append(args, "HEAD")
	default:
		args = append(args, "--cached")
	}
	if len(in.Paths) > 0 {
		args = pathspec(args, in.Paths)
	}
	a, err := r.git(ctx, args...)
	if err != nil {
		return false, err
	}
	if a.Code > 1 {
		return false, gitexec.Fatal(r.operation, a)
	}
	return a.Code == 1, nil
}

// identity gives git a name to commit under if the person has configured none;
// Author in the result says which it was.
func (r *repository) identity(ctx context.Context) ([]string, error) {
	a, err := r.git(ctx, "var", "GIT_COMMITTER_IDENT")
	if err != nil || a.Code == 0 {
		return nil, err
	}
	return []string{"-c", "user.name=sentinel", "-c", "user.email=sentinel@localhost"}, nil
}

// maxBranches bounds the branches that are listed.
const maxBranches = 500

// branch lists the branches with the newest commits, or makes one without changing to it.
func (r *repository) branch(ctx context.Context, in request, out *Result) error {
	if in.Branch != "" {
		args := []string{"branch", "--no-track", in.Branch}
		if in.Base != "" {
			args = append(args, in.Base)
		}
		if _, err := r.must(ctx, args...); err != nil {
			return err
		}
	}
	text, err := r.must(ctx, "for-each-ref", "--count="+strconv.Itoa(maxBranches+1), "--sort=-committerdate", "--format=%(refname:short)", "refs/heads")
	if err != nil {
		return err
	}
	out.Branches = strings.FieldsFunc(text, func(r rune) bool { return r == '\n' }) // names may have other spaces of Unicode
	if len(out.Branches) > maxBranches {
		out.Branches, out.Truncated = out.Branches[:maxBranches], true
	}
	if out.Branch, out.Hash, err = r.head(ctx); err != nil {
		return err
	}
	if out.Output = strings.Join(out.Branches, "\n"); in.Branch != "" {
		out.Branch = in.Branch
	}
	return nil
}

// checkout changes to a branch or commit, or with paths takes back the changes
// of files.
func (r *repository) checkout(ctx context.Context, in request, out *Result) error {
	args := []string{"checkout", "--quiet", "--no-recurse-submodules"}
	switch {
	case len(in.Paths) > 0:
		from, err := r.resolve(ctx, cmp.Or(in.Base, "HEAD"))
		if err != nil {
			return err
		}
		args = pathspec(append(args, from), in.Paths)
	case in.Branch == "":
		return badField("branch", "", "is missing: name a branch, or paths to take back")
	case in.Create:
		args = append(args, "--no-track", "-b", in.Branch)
		if in.Base != "" {
			args = append(args, in.Base)
		}
		args = append(args, "--")
	default:
		args = append(args, "--no-guess", in.Branch, "--")
	}
	current, _, err := r.head(ctx)
	if err != nil {
		return err
	}
	_, remote, _, err := r.remotesOf(ctx, current)
	if err != nil {
		return err
	}
	if err := r.askServer(ctx, remote); err != nil {
		return err
	}
	if _, err := r.must(ctx, args...); err != nil {
		return err
	}
	if out.Branch, out.Hash, err = r.head(ctx); err != nil {
		return err
	}
	out.Output = fmt.Sprintf("at %s %.10s", out.Branch, out.Hash)
	return nil
}

// init makes a repository in the workspace, without a template and so without
// hooks.
func (r *repository) init(ctx context.Context, in request, out *Result) error {
	name := in.Branch
	if name == "" {
		name = "main"
	}
	text, err := r.must(ctx, "init", "--quiet", "--template=", "--initial-branch="+name, "--", ".")
	if err != nil {
		return err
	}
	out.Branch, out.Output = name, strings.TrimSpace(text)
	if out.Output == "" {
		out.Output = "repository on branch " + name
	}
	return nil
}
