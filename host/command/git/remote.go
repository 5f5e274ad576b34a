package git

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
	"github.com/sentinel-runtime/sentinel/host/internal/gitlfs"
	"github.com/sentinel-runtime/sentinel/host/internal/gitsource"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// target is where a push or pull goes.
type target struct {
	remote string
	branch string // here
	there  string // its name at the remote
	tracks bool   // configured as upstream
}

// target finds the remote and branch that are meant, from the branch's own
// configuration where the request does not say.
func (r *repository) target(ctx context.Context, in request) (target, error) {
	t := target{remote: in.Remote, branch: in.Branch}
	if t.branch == "" {
		var err error
		if t.branch, _, err = r.head(ctx); err != nil {
			return t, err
		}
		if t.branch == "" {
			return t, &abi.Error{Code: abi.Conflict, Field: "branch", Permanent: true, Message: fmt.Sprintf("git %s: HEAD is on no branch", r.operation), Hint: "name a branch"}
		}
	}
	if !gitsource.ValidBranch(t.branch) {
		return t, badField("branch", t.branch, "is not a name of a branch")
	}
	own, usual, remotes, err := r.remotesOf(ctx, t.branch)
	if err != nil {
		return t, err
	}
	merge, err := r.line(ctx, "config", "--get", "branch."+t.branch+".merge")
	if err != nil {
		return t, err
	}
	t.remote = cmp.Or(t.remote, usual)
	if !slices.Contains(remotes, t.remote) || !validRemote.MatchString(t.remote) {
		return t, r.noRemote(t.remote, remotes)
	}
	t.there = t.branch
	if name, ok := strings.CutPrefix(merge, "refs/heads/"); ok && own == t.remote && gitsource.ValidBranch(name) {
		t.there, t.tracks = name, true
	}
	return t, nil
}

// remotesOf returns the remotes that are set, the one that the configuration of a branch names, and the one
// that is meant where none is named; "" for none.
func (r *repository) remotesOf(ctx context.Context, branch string) (own, usual string, remotes []string, err error) {
	if own, err = r.line(ctx, "config", "--get", "branch."+branch+".remote"); err != nil {
		return "", "", nil, err
	}
	text, err := r.must(ctx, "remote")
	if err != nil {
		return "", "", nil, err
	}
	switch remotes = strings.Fields(text); {
	case slices.Contains(remotes, own):
		usual = own
	case slices.Contains(remotes, "origin"):
		usual = "origin"
	case len(remotes) == 1:
		usual = remotes[0]
	}
	return own, usual, remotes, nil
}

// noRemote says that a remote is not one of those that are set, or that none was named and none is the
// obvious one.
func (r *repository) noRemote(name string, remotes []string) error {
	e := &abi.Error{Code: abi.NotFound, Field: "remote", Permanent: true}
	switch {
	case name != "":
		e.Message = fmt.Sprintf("git %s: remote %q is not set", r.operation, name)
	case len(remotes) == 0:
		e.Message = fmt.Sprintf("git %s: the repository has no remote", r.operation)
	default:
		e.Message = fmt.Sprintf("git %s: no remote is named, and none of several is called origin", r.operation)
	}
	if e.Hint = "name one of " + strings.Join(remotes, ", "); len(remotes) == 0 {
		e.Hint = "git remote add " + gitexec.Quote(cmp.Or(name, "origin")) + " URL sets one"
	}
	return e
}

// unreached is the error of a remote that was not reached. Its words may name a URL, and not which remote
// that is.
func (r *repository) unreached(remote string, a gitexec.Answer) error {
	err := gitexec.Fatal(fmt.Sprintf("%s, remote %q", r.operation, remote), a)
	if e := abi.As(err); e != nil && e.Hint == "" {
		e.Hint = "git remote get-url " + gitexec.Quote(remote) + " shows where it is, and git remote set-url changes it"
	}
	return err
}

// local reports whether a URL names a repository on this machine, by git's own
// rules: no scheme but file, and no colon before the first slash.
func local(url string) bool {
	if scheme, _, ok := strings.Cut(url, "://"); ok {
		return scheme == "file"
	}
	colon, slash := strings.IndexByte(url, ':'), strings.IndexByte(url, '/')
	return colon < 0 || slash >= 0 && slash < colon
}

// service has the other side of a local remote, which is a git of ours in
// another user's repository, run without its hooks too. For other remotes it only
// undoes what the repository's configuration may say.
func (r *repository) service(ctx context.Context, remote, kind string, push bool) (string, error) {
	args := []string{"remote", "get-url", "--all", "--", remote}
	if push {
		args = []string{"remote", "get-url", "--all", "--push", "--", remote}
	}
	text, err := r.must(ctx, args...)
	if err != nil {
		return "", err
	}
	urls := strings.Split(strings.TrimRight(text, "\n"), "\n")
	here := local(urls[0])
	for _, url := range urls[1:] {
		if local(url) != here { // one option serves all URLs
			return "", refuse(fmt.Sprintf("remote %q has URLs on this machine and elsewhere", remote), "make them two remotes")
		}
	}
	switch {
	case !here:
		return "git-" + kind, nil
	case !push:
		return r.g.Service(kind), nil
	}
	for i, url := range urls {
		if urls[i] = strings.TrimPrefix(url, "file://"); !filepath.IsAbs(urls[i]) {
			urls[i] = filepath.Join(r.top, urls[i])
		}
		if err := r.g.hold(urls[i]); err != nil { // its settings may have git update its work tree
			return "", err
		}
	}
	return r.g.ReceivePack(ctx, urls)
}

// push pushes one branch to the branch it tracks, or to one of its own name.
// A remote that refuses is a result. A bounded caller pushes no branch of a ticket: its commit may be another one than
// was verified.
func (r *repository) push(ctx context.Context, in request, bounded bool, out *Result) error {
	t, err := r.target(ctx, in)
	if err != nil {
		return err
	}
	for _, name := range []string{t.branch, t.there} {
		if !bounded {
			break
		}
		if taken, err := r.g.ofTicket(ctx, name); err != nil {
			return err
		} else if taken {
			return &abi.Error{Code: abi.Denied, Permanent: true, Field: "branch", Message: fmt.Sprintf("git push: branch %q is or may become that of a ticket, and is pushed only as it was verified", name),
				Hint: "worktree/push pushes the commit for which verify/run passed, and ticket/complete reports it; for other work, push a branch of another name"}
		}
	}
	service, err := r.service(ctx, t.remote, "receive-pack", true)
	if err != nil {
		return err
	}
	if err := r.sendObjects(ctx, t); err != nil {
		return err
	}
	args := []string{"push", "--porcelain", "--no-verify", "--no-signed", "--recurse-submodules=no", "--receive-pack=" + service}
	if !t.tracks {
		args = append(args, "--set-upstream")
	}
	a, err := r.git(ctx, append(args, "--", t.remote, "refs/heads/"+t.branch+":refs/heads/"+t.there)...)
	if err != nil {
		return err
	}
	out.Remote, out.Branch = t.remote, t.branch
	if out.Hash, err = r.line(ctx, "rev-parse", "--quiet", "--verify", "refs/heads/"+t.branch); err != nil {
		return err
	}
	pushed := false
	out.Pushed, out.ExitCode, out.Success = &pushed, a.Code, a.Code == 0
	refused := strings.Contains(a.Out, "\n!\t") || strings.HasPrefix(a.Out, "!\t")
	if a.Code != 0 && !refused {
		return r.unreached(t.remote, a)
	}
	pushed = a.Code == 0 && !strings.Contains(a.Out, "\n=\t")
	out.Output, _ = fit(strings.TrimSpace(a.Out+a.Err), maxText)
	return nil
}

// sendObjects sends the objects of Git LFS that the branch names and the remote may not have.
func (r *repository) sendObjects(ctx context.Context, t target) error {
	top := "refs/heads/" + t.branch
	if hash, err := r.line(ctx, "rev-parse", "--quiet", "--verify", top+"^{commit}"); err != nil || hash == "" {
		return err // the push names the branch that is missing
	}
	objects, err := gitlfs.Objects(ctx, r.exec, top, "--remotes="+t.remote)
	if err != nil || len(objects) == 0 {
		return err
	}
	if err := r.askServer(ctx, t.remote); err != nil {
		return err
	}
	return gitlfs.Push(ctx, r.exec, t.remote, objects)
}

// askServer has git-lfs ask the server of a remote from now on, see [gitlfs.Server]; for remote "" nothing but
// the repository itself.
func (r *repository) askServer(ctx context.Context, remote string) error {
	var server [][2]string
	if remote == "" {
		dir, err := r.must(ctx, "rev-parse", "--absolute-git-dir")
		if err != nil {
			return err
		}
		server = gitlfs.Local(strings.TrimSpace(dir))
	} else {
		url, err := r.must(ctx, "remote", "get-url", "--push", "--", remote)
		if err != nil {
			return err
		}
		if server, err = gitlfs.Server(ctx, r.exec, remote, strings.TrimSpace(url)); err != nil {
			return err
		}
	}
	g := *r.g
	g.Env = gitlfs.WithSettings(g.Env, server...)
	r.g = &g
	return nil
}

// pull brings the branch up to its remote, forward only; fetch only looks. A
// branch that went its own way is a result: the user must merge it.
func (r *repository) pull(ctx context.Context, in request, out *Result) error {
	t, err := r.target(ctx, in)
	if err != nil {
		return err
	}
	current, before, err := r.head(ctx)
	if err != nil {
		return err
	}
	if r.operation == "pull" && t.branch != current {
		return &abi.Error{Code: abi.Conflict, Field: "branch", Permanent: true, Message: fmt.Sprintf("git pull: branch %q: is not the current one", t.branch), Hint: "check it out first, or use operation fetch"}
	}
	service, err := r.service(ctx, t.remote, "upload-pack", false)
	if err != nil {
		return err
	}
	track := fmt.Sprintf("+refs/heads/%s:refs/remotes/%s/%s", t.there, t.remote, t.there)
	a, err := r.git(ctx, "fetch", "--no-tags", "--no-recurse-submodules", "--no-auto-maintenance", "--no-write-fetch-head", "--upload-pack="+service, "--", t.remote, track)
	if err != nil {
		return err
	}
	if a.Code != 0 {
		return r.unreached(t.remote, a)
	}
	out.Remote, out.Branch, out.Hash = t.remote, t.branch, before
	fetched, err := r.resolve(ctx, "refs/remotes/"+t.remote+"/"+t.there) // another fetch may move it
	if err != nil {
		return err
	}
	if r.operation == "fetch" {
		out.Hash = fetched
		out.Output = fmt.Sprintf("%s/%s is at %.10s", t.remote, t.there, out.Hash)
		return nil
	}
	if err := r.askServer(ctx, t.remote); err != nil {
		return err
	}
	if err := r.keepsFiles(ctx, cmp.Or(before, noFiles), fetched, "--"); err != nil {
		return err
	}
	a, err = r.git(ctx, "merge", "--ff-only", "--no-verify", "--no-verify-signatures", "--quiet", fetched)
	if err != nil {
		return err
	}
	if a.Code != 0 && !strings.Contains(strings.ToLower(a.Err), "fast-forward") {
		return gitexec.Fatal(r.operation, a)
	}
	out.Success, out.ExitCode = a.Code == 0, a.Code
	if _, out.Hash, err = r.head(ctx); err != nil {
		return err
	}
	switch {
	case a.Code != 0:
		out.Output = strings.TrimSpace(a.Err)
	case out.Hash == before:
		out.Output = "already up to date"
	default:
		out.Output = fmt.Sprintf("from %.10s to %.10s", before, out.Hash)
	}
	return nil
}
