package git

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
	"github.com/sentinel-runtime/sentinel/host/internal/gitlfs"
	"github.com/sentinel-runtime/sentinel/host/internal/gitsource"
	"github.com/sentinel-runtime/sentinel/host/internal/rootfs"
	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// runner starts git.
type runner struct {
	gitexec.Runner
	rules    command.FileRules
	worktree func(folder string) string                             // [Options.Worktree]
	check    func(folder string) error                              // [Options.Check]
	holdTree func(folder string) (release func(), err error)        // [Options.HoldTree]
	trees    *[]func()                                              // releases of those that the call holds
	ofTicket func(ctx context.Context, branch string) (bool, error) // [Options.OfTicket]
	source   *gitsource.Mirrors                                     // opens repositories; it has no mirrors
}

// repository is the repository of one call, found safe to work on.
type repository struct {
	g         *runner
	dir       string // where git runs: the workspace
	top       string // folder of the work tree
	ssh       string // the person's own ssh command
	operation string
	held      bool                                // the caller is a model or an agent
	hides     func(name string) bool              // files that the caller does not see; nil hides none
	sealed    func(name string, data []byte) bool // likewise by what is in them
}

// hold keeps confined commands out of a work tree until the call ends.
func (g *runner) hold(folder string) error {
	release, err := g.holdTree(folder)
	if err != nil {
		if e := abi.As(err); e != nil && e.Hint != "" {
			e.Hint += "; log, show, branch, push and fetch of code/git work meanwhile"
		}
		return err
	}
	*g.trees = append(*g.trees, release)
	return nil
}

func (g *runner) release() {
	for _, release := range *g.trees {
		release()
	}
}

// inTree are operations that read or write files of the work tree. Others are about the repository alone.
var inTree = map[string]bool{"status": true, "diff": true, "add": true, "commit": true, "checkout": true, "pull": true, "init": true}

// holdWorkspace holds the workspace of a call, which is the folder dir without links. What was a folder
// when the call was admitted may have become a link by a command that has ended since.
func (g *runner) holdWorkspace(call *command.Call, dir string) error {
	if err := g.hold(dir); err != nil {
		return err
	}
	tree, err := call.OpenWorkspace(rootfs.Rules{}) // without links where the caller may have none
	if err != nil {
		return err
	}
	_ = tree.Close() // it was only looked at
	if now, err := filepath.EvalSymlinks(call.Workspace); err != nil || now != dir {
		return &abi.Error{Code: abi.Conflict, Message: fmt.Sprintf("git: workspace %q was replaced while the call began", call.Workspace), Hint: "repeat the call, if the workspace is still the folder that is meant"}
	}
	return nil
}

// outsiders are operations that change files wherever the work tree has them,
// so they need a workspace that holds all of it.
var outsiders = map[string]bool{"checkout": true, "pull": true}

// open looks at the repository without running anything it names.
func (g *runner) open(ctx context.Context, call *command.Call, operation string) (*repository, error) {
	workspace := call.Workspace
	if !filepath.IsAbs(workspace) {
		return nil, abi.New(abi.Internal, fmt.Sprintf("git: workspace %q: not an absolute path", workspace))
	}
	dir, err := filepath.EvalSymlinks(workspace)
	if err != nil {
		return nil, fmt.Errorf("git: workspace: %w", err)
	}
	if inTree[operation] {
		if err := g.holdWorkspace(call, dir); err != nil {
			return nil, err
		}
	}
	own := *g
	own.Hold = call.Peak().Hold
	r := &repository{g: &own, dir: dir, operation: operation, held: call.Held()}
	if operation == "init" {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil && call.Held() { // git changes what is there
			r.top = dir
			if err := g.check(dir); err != nil {
				return nil, err
			}
			return r, r.keepInside(ctx)
		}
		if top := gitexec.WorkTree(dir); top != "" && top != dir && call.Held() {
			return nil, refuse(fmt.Sprintf("the workspace is in the repository %q, whose place a new one would take", top), "")
		}
		return r, nil
	}
	a, err := r.git(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	if a.Code != 0 {
		return nil, gitexec.Fatal(operation, a)
	}
	r.top = filepath.FromSlash(strings.TrimRight(a.Out, "\r\n"))
	if real, err := filepath.EvalSymlinks(r.top); err == nil {
		r.top = real
	}
	rel, err := filepath.Rel(r.top, dir)
	if err != nil || !filepath.IsLocal(rel) {
		// core.worktree can point anywhere.
		return nil, refuse(fmt.Sprintf("the work tree %q does not hold the workspace", r.top), "")
	}
	if rel != "." && inTree[operation] {
		if err := g.hold(r.top); err != nil {
			return nil, err
		}
	}
	if rel != "." && outsiders[operation] {
		return nil, refuse(fmt.Sprintf("%s would change files outside the workspace, in %q", operation, r.top), "use the folder of the repository as workspace")
	}
	if call.Held() {
		if err := g.check(r.top); err != nil {
			return nil, err
		}
		if err := r.keepInside(ctx); err != nil {
			return nil, err
		}
	}
	return r, r.inspect(ctx)
}

// keepInside returns an error for a repository that leads to another one, and has git work on the
// directory that it has found, whatever .git names later.
func (r *repository) keepInside(ctx context.Context) (err error) {
	dir := ""
	if r.g.worktree != nil {
		dir = r.g.worktree(r.top)
	}
	if dir == "" { // a worktree of the host borrows the objects of its repository
		if dir, err = r.g.source.Open(ctx, r.top); err != nil {
			if e := abi.As(err); e != nil {
				own := *e
				own.Field = "" // of a ticket
				return &own
			}
			return err
		}
	}
	g := *r.g
	g.Env = []string{"GIT_DIR=" + dir, "GIT_WORK_TREE=" + r.top}
	r.g = &g
	return nil
}

// refuse is the error for a repository or request that is not safe to serve.
func refuse(problem, hint string) error {
	return &abi.Error{Code: abi.Denied, Permanent: true, Message: "git: " + problem, Hint: hint}
}

// unsafe matches the keys that name a program and cannot be overridden,
// because their middle part is free. Merge drivers are not among them: a pull
// only goes forward and merges no file.
var unsafe = lazyregexp.New(`^(credential(\..*)?\.helper|filter\..*\.(clean|smudge|process)|remote\..*\.(uploadpack|receivepack|vcs)|` +
	`lfs\.(customtransfer|extension)\..*|lfs\..*\.standalonetransferagent|lfs\.standalonetransferagent|core\.gitproxy|hook\..*\.(command|event))$`)

// diverting matches the keys with which a repository sends requests to a remote, and the credentials of
// the person in them, to another server, or trusts one that is not proved to be the remote.
var diverting = lazyregexp.New(`^(http(\..*)?\.(proxy[a-z]*|ssl[a-z]*|extraheader|cookiefile|curloptresolve|followredirects|emptyauth|delegation|pinnedpubkey)|` +
	`remote\..*\.(proxy[a-z]*)|url\..*\.(pushinsteadof|insteadof)|credential\..*)$`)

// remotes are operations that send requests to a remote.
var remotes = map[string]bool{"push": true, "pull": true, "fetch": true}

// harmless reports whether a value of such a key is one that many honest repositories have.
func harmless(value string) bool {
	return value == "git-upload-pack" || value == "git-receive-pack" || slices.Contains(gitlfs.Filters, value)
}

// inspect reads the configuration and refuses a repository that names programs
// which could not be kept from running.
func (r *repository) inspect(ctx context.Context) error {
	a, err := r.git(ctx, gitexec.ListConfig...)
	if err != nil {
		return err
	}
	if a.Code != 0 || a.Cut {
		return gitexec.Fatal(r.operation, a)
	}
	for e := range gitexec.Config(a.Out) {
		switch {
		case (e.Scope == "system" || e.Scope == "global") && e.Key == "core.sshcommand":
			r.ssh = e.Value
		case e.OfRepository() && unsafe.MatchString(e.Key) && !harmless(e.Value):
			return refuse(fmt.Sprintf("the repository's configuration has %s, which names a program to run", e.Key),
				"if you trust it, put it into your own configuration: git config --global")
		case e.OfRepository() && r.held && remotes[r.operation] && diverting.MatchString(e.Key):
			return refuse(fmt.Sprintf("the repository's configuration has %s, which decides where requests and credentials go", e.Key),
				"a person who trusts it puts it into their own configuration (git config --global), or does the "+r.operation+" in a terminal")
		}
	}
	return nil
}

// inspectInner refuses submodules whose own configuration names programs that git starts when it
// looks for changes in them.
func (r *repository) inspectInner(ctx context.Context) error {
	folder, key, err := r.g.InnerFilter(ctx, r.dir, harmless)
	if err == nil && folder != "" {
		err = refuse(fmt.Sprintf("the repository in %q has the setting %s, which names a program to run", folder, key), "remove the setting or the folder, or use git in a terminal")
	}
	return err
}

// git runs git in the repository.
func (r *repository) git(ctx context.Context, args ...string) (gitexec.Answer, error) {
	return r.exec(ctx, "", args...)
}

// exec is git with standard input.
func (r *repository) exec(ctx context.Context, stdin string, args ...string) (gitexec.Answer, error) {
	return r.g.Exec(ctx, r.dir, r.ssh, stdin, args...)
}

// must runs git and makes an error of every exit code but 0.
func (r *repository) must(ctx context.Context, args ...string) (string, error) {
	a, err := r.git(ctx, args...)
	if err != nil {
		return "", err
	}
	if a.Code != 0 {
		return "", gitexec.Fatal(r.operation, a)
	}
	return a.Out, nil
}

// line runs git and returns its one line, "" if it says no.
func (r *repository) line(ctx context.Context, args ...string) (string, error) {
	a, err := r.git(ctx, args...)
	if err != nil || a.Code != 0 {
		return "", err
	}
	return strings.TrimSpace(a.Out), nil
}

// head returns the current branch, "" if detached, and the commit, "" if there
// is none yet.
func (r *repository) head(ctx context.Context) (branch, hash string, err error) {
	// Not with --short, which is heads/NAME where a tag has the name of the branch.
	if branch, err = r.line(ctx, "symbolic-ref", "--quiet", "HEAD"); err != nil {
		return "", "", err
	}
	branch = strings.TrimPrefix(branch, "refs/heads/")
	hash, err = r.line(ctx, "rev-parse", "--quiet", "--verify", "HEAD^{commit}")
	return branch, hash, err
}

// resolve returns the commit that a revision names. A tree or a file has no name by which it
// could be hidden, so git is given commits only.
func (r *repository) resolve(ctx context.Context, revision string) (string, error) {
	hash, err := r.must(ctx, "rev-parse", "--verify", "--end-of-options", revision+"^{commit}")
	return strings.TrimSpace(hash), err
}

// pathspec appends paths after the mark that ends options; none means all of
// the workspace.
func pathspec(args, paths []string) []string {
	args = append(args, "--")
	if len(paths) == 0 {
		return append(args, ".")
	}
	for _, path := range paths {
		args = append(args, gitexec.Literal+path)
	}
	return args
}
