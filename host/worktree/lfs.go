package worktree

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
	"github.com/sentinel-runtime/sentinel/host/internal/gitlfs"
	"github.com/sentinel-runtime/sentinel/host/internal/gitsource"
	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// lfsRemote returns variables by which git-lfs asks the remote of the repository for objects
// that are not on this machine, and not the repository that the clone has as its origin. Without a
// remote that is the repository itself.
func (t *tree) lfsRemote(ctx context.Context) (env []string, err error) {
	at := "file://" + filepath.ToSlash(t.Source)
	if to, err := t.remote(ctx, "origin"); err == nil && to.URL != "" {
		if env, err = t.s.mirrors.Credential(to.URL); err != nil {
			return nil, err
		}
		if at = to.URL; to.Local != "" {
			at = "file://" + filepath.ToSlash(to.Local)
		}
	}
	server, err := gitlfs.Server(ctx, t.inSource, "origin", at)
	if err != nil {
		return nil, err
	}
	return gitlfs.WithSettings(env, append(server, [2]string{"remote.origin.url", at})...), nil
}

// inSource is git in the repository that the objects are borrowed from.
func (t *tree) inSource(ctx context.Context, stdin string, args ...string) (gitexec.Answer, error) {
	git := t.s.git
	git.Env = []string{"GIT_DIR=" + t.Source}
	return git.Exec(ctx, t.Source, "", stdin, args...)
}

// lfsStore is the folder with the objects of the repository.
func (t *tree) lfsStore(ctx context.Context) (string, error) {
	return gitlfs.Store(ctx, t.inSource, t.Source)
}

// wantFilter is an error if a file of Git LFS is staged and git has no filter for it: its
// content would be in the commit, and not in the store.
func (t *tree) wantFilter(ctx context.Context) error {
	a, err := t.exec(ctx, "", "grep", "--cached", "-q", "--fixed-strings", "-e", "filter=lfs",
		"--", ".gitattributes", ":(glob)**/.gitattributes")
	if err != nil || a.Code != 0 {
		return err
	}
	if a, err = t.exec(ctx, "", "config", "--get-regexp", `^filter\.lfs\.(clean|process)$`); err != nil || a.Code == 0 {
		return err
	}
	names, err := t.must(ctx, "diff", "diff", "--cached", "--name-only", "-z", "--no-renames", "--diff-filter=AMT", "HEAD")
	if err != nil || names == "" {
		return err
	}
	if a, err = t.exec(ctx, names, "check-attr", "-z", "--stdin", "filter"); err != nil {
		return err
	}
	for fields := strings.Split(a.Out, "\x00"); len(fields) > 3; fields = fields[3:] { // name, filter, value
		if fields[2] == "lfs" {
			name := textcut.Mark(fields[0], 200)
			return &abi.Error{
				Code: abi.Conflict, Permanent: true,
				Message: fmt.Sprintf("file %s belongs to Git LFS, which is not set up on this machine: its content would be committed", name),
				Hint:    "install git-lfs, and run git lfs install",
			}
		}
	}
	return nil
}

// shareObjects copies the objects of Git LFS that were made in the worktree to where the git of
// the repository finds them, since the worktree will be gone.
func (t *tree) shareObjects(ctx context.Context) error {
	if !exists(t.lfsDir()) {
		return nil
	}
	store, err := t.lfsStore(ctx)
	if err != nil {
		return err
	}
	return gitlfs.Share(ctx, t.gitDir(), store)
}

// sendObjects sends the objects of Git LFS that a push needs.
func (t *tree) sendObjects(ctx context.Context, to gitsource.Repository, credential []string, last string) error {
	without := []string{}
	if last != "" {
		without = append(without, last)
	}
	if own, err := gitsource.Parse("repo", t.RepoURL); err == nil && own.Local == "" { // the base is as the remote has it
		without = append(without, t.BaseCommit)
	}
	objects, err := gitlfs.Objects(ctx, t.exec, t.Commit, without...)
	if err != nil || len(objects) == 0 {
		return err
	}
	// The objects of earlier commits are there, and not in the worktree. With a remote on this
	// machine git-lfs would take the setting for that of the remote; it finds those objects by itself.
	at := cmp.Or(to.Local, to.URL)
	settings, err := gitlfs.Server(ctx, t.inSource, "origin", at)
	if err != nil {
		return err
	}
	if to.Local == "" {
		store, err := t.lfsStore(ctx)
		if err != nil {
			return err
		}
		settings = append(settings, [2]string{"lfs.storage", filepath.Dir(store)})
	}
	env := gitlfs.WithSettings(credential, settings...)
	send := func(ctx context.Context, stdin string, args ...string) (gitexec.Answer, error) {
		return t.run(ctx, env, stdin, args...)
	}
	return gitlfs.Push(ctx, send, at, objects)
}
