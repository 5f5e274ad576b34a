package git

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
	"github.com/sentinel-runtime/sentinel/host/internal/gitsource"
	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// add stages files. It needs paths: staging everything must be said.
func (r *repository) add(ctx context.Context, in request, out *Result) error {
	if len(in.Paths) == 0 {
		return badField("paths", "", `is missing: name files, or "." for all`)
	}
	if err := r.inspectInner(ctx); err != nil {
		return err
	}
	before, err := r.changedUnseen(ctx, gitsource.InIndex, "--cached")
	if err != nil {
		return err
	}
	if out.Hidden, err = r.unstagedHidden(ctx, in.Paths); err != nil {
		return err
	}
	if _, err := r.must(ctx, without(pathspec([]string{"add"}, in.Paths), out.Hidden)...); err != nil {
		return err
	}
	after, err := r.changedUnseen(ctx, gitsource.InIndex, "--cached")
	if err != nil {
		return err
	}
	if added := slices.DeleteFunc(after, func(name string) bool { return slices.Contains(before, name) }); len(added) > 0 { // it was made meanwhile
		if _, err := r.must(ctx, append([]string{"reset", "--quiet", "--"}, gitsource.Literal(added)...)...); err != nil {
			return err
		}
		return refuse(fmt.Sprintf("add would stage %q, which models do not see", added[0]), "a person can")
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
	if err := r.commitsNoHidden(ctx, in, out.Hash); err != nil {
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

// changed returns the files that differ. args are those of git diff.
func (r *repository) changed(ctx context.Context, args ...string) ([]string, error) {
	return r.names(ctx, append([]string{"diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all"}, args...)...)
}

// changedUnseen returns the files that the caller does not see among those that differ, with the content that they have in a side.
func (r *repository) changedUnseen(ctx context.Context, side string, args ...string) ([]string, error) {
	if r.hides == nil {
		return nil, nil
	}
	names, err := r.changed(ctx, args...)
	if err != nil {
		return nil, err
	}
	return r.unseen(ctx, names, side)
}

// unstagedHidden returns the files that the caller does not see among those that an add of paths would stage.
func (r *repository) unstagedHidden(ctx context.Context, paths []string) ([]string, error) {
	if r.hides == nil {
		return nil, nil
	}
	names, err := r.names(ctx, pathspec([]string{"ls-files", "-z", "--full-name", "--others", "--modified", "--exclude-standard"}, paths)...)
	if err != nil {
		return nil, err
	}
	return r.unseen(ctx, names, gitsource.InUntracked)
}

// names returns the names that a git lists with zero bytes behind them, relative to the top of the work tree.
func (r *repository) names(ctx context.Context, args ...string) ([]string, error) {
	a, err := r.git(ctx, args...)
	switch {
	case err != nil:
		return nil, err
	case a.Code != 0:
		return nil, gitexec.Fatal(r.operation, a)
	case a.Cut:
		return nil, refuse("too many files changed to see which of them models may change", "name paths, or let a person do it")
	}
	return strings.FieldsFunc(a.Out, func(c rune) bool { return c == 0 }), nil
}

// commitsNoHidden returns the error of a commit with files that the caller does not see: who reads the commit, such as a
// remote or a shell without a sight of these files, would have them.
func (r *repository) commitsNoHidden(ctx context.Context, in request, head string) error {
	side := gitsource.InIndex
	if in.All || len(in.Paths) > 0 {
		side = gitsource.InWorkTree
	}
	names, err := r.changedUnseen(ctx, side, committed(in, head)...)
	if err == nil && len(names) > 0 {
		err = refuse(fmt.Sprintf("the commit would have %q, which models do not see", names[0]), "name the paths to commit, or let a person do it")
	}
	return err
}

// keepsFiles returns the error of a model or an agent that would have git change files of the host itself, from what is
// in the work tree or a commit to another one: a person's definition would be gone, or an earlier one back that asks less.
// So it is with files that the caller does not see, such as .env, and with files that git could not restore. args are those of
// git diff.
func (r *repository) keepsFiles(ctx context.Context, args ...string) error {
	if !r.held {
		return nil
	}
	names, err := r.changed(ctx, args...)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(names, r.g.rules.In(r.top).OfHost); i >= 0 {
		return refuse(fmt.Sprintf("%s would change %q, which is of the host itself", r.operation, names[i]), "a person can, in a terminal")
	}
	hidden, err := r.unseen(ctx, names) // by their names
	if err == nil && len(hidden) > 0 {
		err = refuse(fmt.Sprintf("%s would change %q, which models do not see", r.operation, hidden[0]), "a person can, in a terminal")
	}
	if err != nil {
		return err
	}
	unknown, err := r.unknownAt(ctx, names)
	if err == nil && len(unknown) > 0 {
		err = refuse(fmt.Sprintf("%s would replace %q, which is in no commit", r.operation, unknown[0]), "a person can, in a terminal")
	}
	return err
}

// unknownAt returns files that git does not know or ignores, and that are where names would be: git replaces those that
// it ignores without a question, also all in a folder for a file, and a file for a folder.
func (r *repository) unknownAt(ctx context.Context, names []string) (list []string, err error) {
	at, looked := slices.Clone(names), map[string]bool{}
	for _, name := range names {
		for up := path.Dir(name); up != "." && !looked[up]; up = path.Dir(up) {
			looked[up] = true
			if info, err := os.Lstat(filepath.Join(r.top, filepath.FromSlash(up))); err == nil && !info.IsDir() {
				at = append(at, up)
			}
		}
	}
	for part := range slices.Chunk(at, gitsource.MostPaths) {
		found, err := r.names(ctx, append([]string{"ls-files", "-z", "--full-name", "--others", "--"}, gitsource.Literal(part)...)...)
		if err != nil {
			return nil, err
		}
		list = append(list, found...)
	}
	return list, nil
}

// committed returns the arguments of git diff for what a commit would have.
func committed(in request, head string) []string {
	args := []string{"--cached"}
	if (in.All || len(in.Paths) > 0) && head != "" {
		args = []string{"HEAD"}
	}
	if len(in.Paths) > 0 {
		args = pathspec(args, in.Paths)
	}
	return args
}

// anything reports whether a commit would hold something.
func (r *repository) anything(ctx context.Context, in request, head string) (bool, error) {
	a, err := r.git(ctx, append([]string{"diff", "--quiet", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty"}, committed(in, head)...)...)
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

// checkNew refuses to a model or an agent a branch that hides what the user means by another name, such as
// origin/main or a tag, or is in the way of branches of others. The rules are those for branches of tickets.
func (r *repository) checkNew(ctx context.Context, branch string) error {
	if !r.held {
		return nil
	}
	if err := gitsource.CheckNewBranch("branch", branch); err != nil {
		return err
	}
	if !gitsource.AgentMayName(branch) {
		return &abi.Error{Code: abi.Denied, Field: "branch", Permanent: true,
			Message: fmt.Sprintf("git: branch %q: models and agents name branches below work/ only", branch),
			Hint:    "name work/" + branch[strings.LastIndex(branch, "/")+1:]}
	}
	return gitsource.HidesNothing(ctx, "branch", branch, r.line)
}

// noFiles is the tree without files, which git knows in each repository.
const noFiles = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

// maxBranches bounds the branches that are listed.
const maxBranches = 500

// branch lists the branches with the newest commits, or makes one without changing to it.
func (r *repository) branch(ctx context.Context, in request, out *Result) error {
	if in.Branch != "" {
		if err := r.checkNew(ctx, in.Branch); err != nil {
			return err
		}
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
	current, hash, err := r.head(ctx)
	if err != nil {
		return err
	}
	before := cmp.Or(hash, noFiles)
	args, ref := []string{"checkout", "--quiet", "--no-recurse-submodules"}, ""
	switch {
	case len(in.Paths) > 0:
		from, err := r.resolve(ctx, cmp.Or(in.Base, "HEAD"))
		if err != nil {
			return err
		}
		if err := r.keepsFiles(ctx, pathspec([]string{from}, in.Paths)...); err != nil {
			return err
		}
		args = pathspec(append(args, from), in.Paths)
	case in.Branch == "":
		return badField("branch", "", "is missing: name a branch, or paths to take back")
	case in.Create:
		if err := r.checkNew(ctx, in.Branch); err != nil {
			return err
		}
		args = append(args, "--no-track", "-b", in.Branch)
		if in.Base != "" {
			from, err := r.resolve(ctx, in.Base)
			if err != nil {
				return err
			}
			if err := r.keepsFiles(ctx, before, from, "--"); err != nil {
				return err
			}
			args = append(args, from)
		}
		args = append(args, "--")
	default:
		to, err := r.destination(ctx, in.Branch)
		if err != nil {
			return err
		}
		if err := r.keepsFiles(ctx, before, to.commit, "--"); err != nil {
			return err
		}
		// The files are those of the commit that was looked at, wherever the branch is by now.
		args, ref = append(args, "--detach", to.commit, "--"), to.ref
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
	if ref != "" {
		if _, err := r.must(context.WithoutCancel(ctx), "symbolic-ref", "HEAD", ref); err != nil {
			return err
		}
	}
	if out.Branch, out.Hash, err = r.head(ctx); err != nil {
		return err
	}
	out.Output = fmt.Sprintf("at %s %.10s", out.Branch, out.Hash)
	return nil
}

// A destination is what a checkout changes to.
type destination struct {
	commit string
	ref    string // of the branch; "" is a commit without one
}

// destination finds what a name means to a checkout: the branch of that name, whatever tag has the name too, or else a commit.
// It is an error if another work tree is at the branch.
func (r *repository) destination(ctx context.Context, name string) (destination, error) {
	to := destination{ref: "refs/heads/" + name}
	text, err := r.must(ctx, "for-each-ref", "--format=%(refname)%00%(objectname)%00%(HEAD)%00%(worktreepath)", to.ref)
	if err != nil {
		return to, err
	}
	parts := strings.Split(strings.TrimSuffix(text, "\n"), "\x00")
	if len(parts) != 4 || parts[0] != to.ref { // there is none, or those below a folder of the name
		to.ref = ""
		to.commit, err = r.resolve(ctx, name)
		return to, err
	}
	if to.commit = parts[1]; parts[2] != "*" && parts[3] != "" {
		err = &abi.Error{Code: abi.Conflict, Field: "branch", Permanent: true,
			Message: fmt.Sprintf("git %s: branch %q is checked out in %q", r.operation, name, parts[3])}
	}
	return to, err
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
