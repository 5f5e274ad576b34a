package verify

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
	"github.com/sentinel-runtime/sentinel/host/internal/gitlfs"
	"github.com/sentinel-runtime/sentinel/host/internal/gitsource"
	"github.com/sentinel-runtime/sentinel/host/internal/trash"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A checkout is a clone of one branch with a folder for what its commands write.
type checkout struct {
	dir     string // holds all
	tree    string // the work tree
	scratch string // HOME and TMPDIR of commands are below
	commit  string
	objects string // that the clone borrows
}

// checkouts makes them.
type checkouts struct {
	git     gitexec.Runner
	dir     string // of this package's folders
	mirrors gitsource.Mirrors
	removed *trash.Bin
	maxSize int64 // bytes of the files of a commit, 0 for no limit

	published func(repoURL, branch string) string
}

// sweep removes the checkouts that a crash left, and mirrors that nothing has used for
// a month. Their files are deleted in the background.
func (c *checkouts) sweep() error {
	return errors.Join(c.removed.Remove(c.checkoutDir()), c.mirrors.Sweep())
}

func (c *checkouts) checkoutDir() string { return filepath.Join(c.dir, "checkouts") }

// make clones a branch. The clone borrows the objects of a mirror, where only this host
// writes, and has references and settings of its own, so that what commands do to it does not
// touch the mirror. What it borrows is readable for commands, so it is never the repository
// itself: a link there could lead to any folder.
func (c *checkouts) make(ctx context.Context, r gitsource.Repository, branch string) (_ *checkout, err error) {
	if c.git.Program == "" {
		return nil, &abi.Error{Code: abi.Denied, Permanent: true, Message: "git: not on this machine", Hint: "install git, in an absolute folder of PATH"}
	}
	if err := os.MkdirAll(c.checkoutDir(), 0o700); err != nil {
		return nil, err
	}
	source := ""
	if r.Local != "" {
		if _, err := os.Stat(r.Local); err != nil {
			return nil, &abi.Error{Code: abi.NotFound, Permanent: true, Field: "repo_url", Message: fmt.Sprintf("repository %s: %v", r.Local, errors.Unwrap(err))}
		}
	} else if c.published != nil {
		source = c.published(r.URL, branch)
	}
	if source == "" {
		if source, err = c.mirrors.Fetch(ctx, cmp.Or(r.Local, r.URL), "branch_name", branch); err != nil {
			return nil, err
		}
	}
	var name [8]byte
	rand.Read(name[:])
	out := &checkout{objects: filepath.Join(source, "objects"), dir: filepath.Join(c.checkoutDir(), hex.EncodeToString(name[:]))}
	out.tree, out.scratch = filepath.Join(out.dir, "tree"), filepath.Join(out.dir, "scratch")
	if err := os.MkdirAll(out.scratch, 0o700); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = c.removed.Remove(out.dir) // the next sweep does it
		}
	}()
	args := []string{"clone", "--quiet", "--shared", "--no-checkout", "--no-tags", "--single-branch", "--no-recurse-submodules"}
	if branch != "" {
		args = append(args, "--branch", branch)
	}
	if r.Local != "" {
		own, err := c.mirrors.Open(ctx, r.Local)
		if err != nil {
			return nil, err
		}
		filters, err := gitlfs.CloneFilters(ctx, c.in(own))
		if err != nil {
			return nil, err
		}
		args = append(args, filters...)
	}
	a, err := c.git.Exec(ctx, c.checkoutDir(), "", "", append(args, "--", source, out.tree)...)
	if err != nil {
		return nil, err
	}
	if a.Code != 0 {
		return nil, gitsource.Failed("clone", r, "branch_name", branch, a)
	}
	a, err = c.git.Exec(ctx, out.tree, "", "", "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	if err == nil && a.Code != 0 {
		err = gitsource.Failed("rev-parse", r, "branch_name", branch, a)
	}
	if err != nil {
		return nil, err
	}
	out.commit = strings.TrimSpace(a.Out)
	if err := gitsource.CheckSize(ctx, c.git, out.tree, r.URL, c.maxSize); err != nil {
		return nil, err
	}
	git := c.git
	if git.Env, err = c.lfsObjects(ctx, r, source, out.commit); err != nil {
		return nil, err
	}
	a, err = git.Exec(ctx, out.tree, c.mirrors.SSH(), "", "checkout", "--quiet", "--no-recurse-submodules", "HEAD", "--")
	if err == nil && a.Code != 0 {
		err = gitsource.Failed("checkout", r, "branch_name", branch, a)
	}
	return out, err
}

// in is git in a git directory.
func (c *checkouts) in(dir string) gitlfs.Git {
	git := c.git
	git.Env = []string{"GIT_DIR=" + dir}
	return func(ctx context.Context, stdin string, args ...string) (gitexec.Answer, error) {
		return git.Exec(ctx, c.dir, "", stdin, args...)
	}
}

// lfsObjects copies the objects of Git LFS that a commit needs from a repository of this
// machine to its mirror, where git-lfs finds them. For another one it returns the variables by
// which git-lfs asks its remote.
func (c *checkouts) lfsObjects(ctx context.Context, r gitsource.Repository, mirror, commit string) (env []string, err error) {
	if r.Local == "" {
		if env, err = c.mirrors.Credential(r.URL); err != nil {
			return nil, err
		}
		server, err := gitlfs.Server(ctx, c.in(mirror), "origin", r.URL)
		if err != nil {
			return nil, err
		}
		return gitlfs.WithSettings(env, append(server, [2]string{"remote.origin.url", r.URL})...), nil
	}
	env = gitlfs.WithSettings(nil, gitlfs.Local(mirror)...)
	objects, err := gitlfs.Objects(ctx, c.in(mirror), commit+"^{tree}")
	if err != nil || len(objects) == 0 {
		return env, err
	}
	own, err := c.mirrors.Open(ctx, r.Local)
	if err != nil {
		return nil, err
	}
	from, err := gitlfs.Store(ctx, c.in(own), own)
	if err != nil {
		return nil, err
	}
	return env, gitlfs.Fetch(ctx, from, filepath.Join(mirror, "lfs", "objects"), objects)
}

// tip returns the newest commit of a branch where make clones it from, "" if the branch does not
// exist. branch "" is the default branch.
func (c *checkouts) tip(ctx context.Context, r gitsource.Repository, branch string) (string, error) {
	git, ssh, source, ref := c.git, "", "", "HEAD"
	args := []string{"ls-remote"}
	if r.Local != "" {
		var err error
		if source, err = c.mirrors.Open(ctx, r.Local); err != nil {
			return "", err
		}
		args = append(args, c.mirrors.UploadPack())
	} else if c.published != nil {
		source = c.published(r.URL, branch)
	}
	if source == "" {
		var err error
		if git.Env, err = c.mirrors.Credential(r.URL); err != nil {
			return "", err
		}
		ssh, source = c.mirrors.SSH(), r.URL
	}
	if branch != "" {
		ref = "refs/heads/" + branch
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return "", err
	}
	git.Env = append(git.Env, gitexec.NoRepository)
	a, err := git.Exec(ctx, c.dir, ssh, "", append(args, "--", source, ref)...)
	if err != nil {
		return "", err
	}
	if a.Code != 0 {
		return "", gitsource.Failed("ls-remote", r, "branch_name", branch, a)
	}
	for line := range strings.Lines(a.Out) { // git also lists references that end with these words
		if commit, name, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok && name == ref {
			return commit, nil
		}
	}
	return "", nil
}
