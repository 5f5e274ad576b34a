package worktree

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
	"github.com/sentinel-runtime/sentinel/host/internal/gitsource"
	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Pushed is what Push did.
type Pushed struct {
	Pushed bool   `json:"pushed" jsonschema:"the remote has the commit"`
	Commit string `json:"commit"`
	Branch string `json:"branch"`
	Base   string `json:"base"`
	Remote string `json:"remote,omitempty" jsonschema:"URL of the repository that was pushed to"`
	Reason string `json:"reason,omitempty" jsonschema:"why nothing was pushed: no remote, or what the remote said"`
}

var validRemote = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$`)

// Push pushes the branch of a worktree, and no other, to the remote of its repository. Once the
// work is verified, it pushes the commit that was verified and no other. The
// remote's branch is replaced only if it is what was pushed last. A remote that refuses,
// and a repository without a remote, are results.
func (s *Service) Push(ctx context.Context, id string, token uint64, remote string) (out Pushed, err error) {
	if remote != "" && !validRemote.MatchString(remote) {
		return out, &abi.Error{Code: abi.BadFields, Permanent: true, Field: "remote", Message: fmt.Sprintf("remote: %.100q is not a name of a remote; give the name of a configured one, never a URL", remote)}
	}
	err = s.change(ctx, id, token, func(t *tree) error {
		out = Pushed{Commit: t.Commit, Branch: t.Branch, Base: t.Base}
		if t.Branch == t.Base {
			return fail(abi.Denied, "the base is never pushed")
		}
		if err := t.sameCommit(); err != nil {
			return err
		}
		to, err := t.remote(ctx, cmp.Or(remote, "origin"))
		if err != nil {
			return err
		}
		if to.URL == "" {
			out.Reason = fmt.Sprintf("the repository has no remote %s: the branch is in %s", cmp.Or(remote, "origin"), t.RepoURL)
			return nil
		}
		out.Remote = to.URL
		return t.push(ctx, to, &out)
	})
	return out, err
}

// Find returns the worktree of a ticket, for a proposal of its work, and the URL that Push pushes
// to, "" if there is none. Like Push it refuses a commit that is not the verified one.
func (s *Service) Find(ctx context.Context, id string, token uint64) (w Worktree, remote string, err error) {
	err = s.change(ctx, id, token, func(t *tree) error {
		if err := t.sameCommit(); err != nil {
			return err
		}
		w = t.Worktree
		r, err := t.remote(ctx, "origin")
		remote = r.URL
		return err
	})
	return w, remote, err
}

// remote finds where the branch is pushed to: the repository itself if it is on another
// machine, else the remote that it has.
func (t *tree) remote(ctx context.Context, name string) (to gitsource.Repository, err error) {
	if to, err = gitsource.Parse("repo", t.RepoURL); err != nil || to.Local == "" {
		return to, err
	}
	text := ""
	for _, key := range []string{"pushurl", "url"} {
		all, err := t.source(ctx, "config", "--local", "--get-all", "remote."+name+"."+key)
		if err != nil {
			return gitsource.Repository{}, err
		}
		if text, _, _ = strings.Cut(all, "\n"); text != "" {
			break
		}
	}
	if text == "" {
		return gitsource.Repository{}, nil
	}
	if !strings.Contains(text, ":") && !filepath.IsAbs(text) {
		text = filepath.Join(to.Local, text)
	}
	return gitsource.Parse("remote "+name, text)
}

// push pushes to a URL.
func (t *tree) push(ctx context.Context, to gitsource.Repository, out *Pushed) error {
	last, err := t.source(ctx, "rev-parse", "--verify", "--quiet", t.ref("pushed"))
	if err != nil {
		return err
	}
	service := "git-receive-pack"
	if to.Local != "" {
		if service, err = t.s.git.ReceivePack(ctx, []string{to.Local}, "receive.denyCurrentBranch=refuse"); err != nil {
			return err
		}
	}
	credential, err := t.s.mirrors.Credential(to.URL)
	if err != nil {
		return err
	}
	if err := t.sendObjects(ctx, to, credential, last); err != nil {
		if abi.CodeOf(err) == abi.Unavailable || ctx.Err() != nil {
			return err
		}
		out.Reason = textcut.Mark(err.Error(), 2<<10)
		return nil
	}
	a, err := t.run(ctx, credential, "", "push", "--porcelain", "--no-verify", "--no-signed", "--no-follow-tags", "--recurse-submodules=no",
		"--receive-pack="+service, "--force-with-lease="+branchRef(t.Branch)+":"+last, "--", to.URL, t.Commit+":"+branchRef(t.Branch))
	if err != nil {
		return err
	}
	if a.Code != 0 {
		line := refusal(a.Out)
		if line == "" || gitexec.Locked(a) { // the remote has not rejected it
			return gitexec.Fatal("push to "+to.URL, a)
		}
		out.Reason = textcut.Mark(strings.TrimSpace(line+"\n"+a.Err), 2<<10)
		return nil
	}
	out.Pushed = true
	t.s.opt.At("push: done")
	if last == t.Commit {
		return nil
	}
	return t.publish(ctx, update{t.ref("pushed"), last, t.Commit})
}

// refusal returns the line of a push that says what the remote did not take.
func refusal(out string) string {
	for line := range strings.Lines(out) {
		if rest, ok := strings.CutPrefix(line, "!\t"); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}
