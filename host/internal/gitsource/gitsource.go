// Package gitsource reads what tickets say about repositories, and keeps bare copies of
// those that are on other machines.
package gitsource

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/endpoint"
	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
	"github.com/sentinel-runtime/sentinel/host/internal/trash"
	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A Repository is one that can be cloned.
type Repository struct {
	URL   string
	Local string // folder, if it is on this machine
}

// scpLike matches user@host:path, another form of ssh://user@host/path.
var scpLike = lazyregexp.New(`^[A-Za-z0-9._-]+@[A-Za-z0-9.-]+:[^:][^\x00-\x1f]*$`)

// Parse reads a repository as a path, an https or an ssh URL, or an http URL of this machine.
// Others are refused: git would execute a program for some of them, http sends code and tokens
// in the open, and a password in a URL is shown in logs and lists of processes. Errors name the
// field.
func Parse(field, text string) (Repository, error) {
	refuse := func(format string, args ...any) (Repository, error) {
		return Repository{}, &abi.Error{Code: abi.BadFields, Permanent: true, Field: field, Message: field + ": " + fmt.Sprintf(format, args...)}
	}
	if text == "" || len(text) > 4096 || strings.ContainsFunc(text, isControl) {
		return refuse("is missing, or no URL")
	}
	if filepath.IsAbs(text) {
		return Repository{text, filepath.Clean(text)}, nil
	}
	if scpLike.MatchString(text) {
		return Repository{URL: text}, nil
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return refuse("is no URL")
	case strings.ContainsFunc(u.Path, isControl): // it was escaped in text
		return refuse("is no URL")
	case u.Scheme == "file" && (u.Host == "" || u.Host == "localhost") && filepath.IsAbs(u.Path):
		return Repository{text, filepath.Clean(u.Path)}, nil
	case u.Scheme == "http" && u.Host != "" && !endpoint.Loopback(u.Hostname()):
		return refuse("http is not encrypted, and is allowed on this machine only: want an https or an ssh URL of %s", u.Host)
	case u.Scheme != "https" && u.Scheme != "ssh" && u.Scheme != "http":
		return refuse("scheme %.20q: want an absolute path, an https or an ssh URL", u.Scheme)
	case u.Host == "" || strings.HasPrefix(u.Host, "-"):
		return refuse("has no host")
	}
	if _, password := u.User.Password(); password || u.Scheme != "ssh" && u.User != nil {
		return refuse("a URL of %s has credentials: keep them in git's own configuration, or use an ssh key", u.Host)
	}
	return Repository{URL: u.String()}, nil
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// Mirrors are bare copies of repositories on other machines, in a folder. They may be
// used by several goroutines.
type Mirrors struct {
	Git     gitexec.Runner
	Dir     string
	Removed *trash.Bin // takes those that Sweep removes
	Key     string     // file of the private key for ssh; "" is the user's own
	Hosts   string     // file of known hosts; "" is the user's own
	MaxSize int64      // bytes of one mirror; 0 means no limit
	Read    []string   // folders that repositories of this machine may borrow from, see Open
	// Auth returns what https remotes of a server get; nil is git's own credentials.
	Auth func() (Credential, error)

	locks sync.Map // folder of a mirror to its *sync.Mutex
}

// DefaultBranch is what a mirror calls the default branch of its repository, which may
// have any name there.
const DefaultBranch = "sentinel-default"

const keepMirrors = 30 * 24 * time.Hour

// Sweep removes mirrors that nothing has used for a month.
func (m *Mirrors) Sweep() error {
	entries, err := os.ReadDir(m.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > keepMirrors {
			errs = append(errs, m.Removed.Remove(filepath.Join(m.Dir, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// SSH is ssh with the configured key. Keys of hosts are always checked: a machine in
// between could send other code to execute.
func (m *Mirrors) SSH() string {
	words := []string{"ssh", "-oBatchMode=yes", "-oStrictHostKeyChecking=yes"}
	if m.Key != "" {
		words = append(words, "-oIdentitiesOnly=yes", "-i", gitexec.Quote(m.Key))
	}
	if m.Hosts != "" {
		words = append(words, "-oUserKnownHostsFile="+gitexec.Quote(m.Hosts))
	}
	return strings.Join(words, " ")
}

// Failed is the error of a git that did not do its work on a repository. Of one on this
// machine it does not have git's words: git shows lines of the files that it reads there, and
// a link may lead to any file of the user.
func Failed(operation string, r Repository, field, branch string, a gitexec.Answer) error {
	lower := strings.ToLower(a.Err)
	if r.Local != "" && strings.Contains(lower, "does not exist") {
		return &abi.Error{Code: abi.NotFound, Permanent: true, Field: "repo_url", Message: fmt.Sprintf("%s is not a git repository", r.Local)}
	}
	if strings.Contains(lower, "remote branch") && strings.Contains(lower, "not found") || strings.Contains(lower, "couldn't find remote ref") {
		hint := "push it first"
		if r.Local != "" {
			hint = "make it there first, with git branch"
		}
		return &abi.Error{Code: abi.NotFound, Permanent: true, Field: field, Message: fmt.Sprintf("branch %s is not in %s", branch, r.URL), Hint: hint}
	}
	if e := gitexec.Refusal(operation, a); e != nil {
		e.Field = "repo_url"
		return e
	}
	err := gitexec.Fatal(operation, a)
	if e := abi.As(err); r.Local != "" && e != nil {
		return &abi.Error{
			Code: e.Code, Permanent: e.Permanent, Field: "repo_url", Message: fmt.Sprintf("git %s: repository %s cannot be read", operation, r.Local),
			Hint: cmp.Or(e.Hint, "git -C "+gitexec.Quote(r.Local)+" fsck shows why"),
		}
	}
	return err
}

// Folder returns where the mirror of a URL is.
func (m *Mirrors) Folder(from string) string {
	sum := sha256.Sum256([]byte(from))
	return filepath.Join(m.Dir, hex.EncodeToString(sum[:12])+".git")
}

// Fetch fetches one branch, the default branch if it is "", into the mirror of a URL or of an
// absolute path, and returns the folder of the mirror. field names the branch in errors.
func (m *Mirrors) Fetch(ctx context.Context, from, field, branch string) (string, error) {
	to := branch
	if branch == "" {
		to = DefaultBranch
	} else if first, _, _ := strings.Cut(branch, "/"); strings.EqualFold(first, DefaultBranch) {
		return "", &abi.Error{Code: abi.BadFields, Permanent: true, Field: field, Message: fmt.Sprintf("branch %s: the name %s is the host's for the default branch", branch, DefaultBranch), Hint: "rename the branch"}
	}
	return m.FetchTo(ctx, from, field, branch, "refs/heads/"+to)
}

// localTime limits reading a repository of this machine. The first time all of it is copied.
const localTime = 10 * time.Minute

// checkFiles returns an error for a repository of this machine with a file of git in one of dirs that
// is a pipe or a device: git would wait for it.
func checkFiles(repo string, dirs ...string) error {
	for _, dir := range dirs {
		for _, name := range []string{"HEAD", "config", "config.worktree", "commondir", "packed-refs", "shallow", "objects/info/alternates"} {
			path := filepath.Join(dir, filepath.FromSlash(name))
			if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
				return &abi.Error{Code: abi.Denied, Permanent: true, Field: "repo_url", Message: fmt.Sprintf("repository %s: %s is not a regular file", repo, path)}
			}
		}
	}
	return nil
}

// UploadPack is the argument for a git that reads a repository of this machine from the git directory
// that [Mirrors.Open] has returned: upload-pack then takes that directory and searches no other.
func (m *Mirrors) UploadPack() string {
	return "--upload-pack=" + m.Git.Service("upload-pack --strict")
}

// init makes a mirror, if it does not exist. It gets its name when git has ended: a git that is killed leaves a folder
// that it takes for no repository, or a lock in which the next one would fail.
func (m *Mirrors) init(ctx context.Context, dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "HEAD")); err == nil {
		return nil
	}
	if err := os.MkdirAll(m.Dir, 0o700); err != nil {
		return err
	}
	made := dir + ".new"
	for _, left := range []string{made, dir} {
		if err := m.Removed.Remove(left); err != nil {
			return err
		}
	}
	a, err := m.Git.Exec(ctx, m.Dir, "", "", "init", "--quiet", "--bare", "--initial-branch="+DefaultBranch, "--", made)
	if err == nil && a.Code != 0 {
		err = gitexec.Fatal("init", a)
	}
	if err != nil {
		return err
	}
	return os.Rename(made, dir)
}

// clear deletes the references of a mirror that are in the way of one: those that are a folder of
// it, and those that it would be a folder of.
func (m *Mirrors) clear(ctx context.Context, dir, ref string) error {
	a, err := m.Git.Exec(ctx, dir, "", "", "--git-dir="+dir, "for-each-ref", "--format=%(refname)", "--", ref+"/")
	if err == nil && a.Code != 0 {
		err = gitexec.Fatal("for-each-ref", a)
	}
	if err != nil {
		return err
	}
	names := strings.Fields(a.Out)
	for above := path.Dir(ref); strings.Count(above, "/") > 1; above = path.Dir(above) {
		names = append(names, above)
	}
	var commands strings.Builder
	for _, name := range names {
		fmt.Fprintf(&commands, "delete %s\n", name)
	}
	a, err = m.Git.Exec(ctx, dir, "", commands.String(), "--git-dir="+dir, "update-ref", "--stdin")
	if err == nil && a.Code != 0 {
		err = gitexec.Fatal("update-ref", a)
	}
	return err
}

// FetchTo is Fetch into another reference of the mirror.
func (m *Mirrors) FetchTo(ctx context.Context, from, field, branch, to string) (string, error) {
	dir := m.Folder(from)
	l, _ := m.locks.LoadOrStore(dir, new(sync.Mutex))
	lock := l.(*sync.Mutex)
	lock.Lock()
	defer lock.Unlock()
	if err := m.init(ctx, dir); err != nil {
		return "", err
	}
	refspec := "+HEAD:" + to
	if branch != "" {
		refspec = "+refs/heads/" + branch + ":" + to
	}
	git := m.Git
	var err error
	if git.Env, err = m.Credential(from); err != nil {
		return "", err
	}
	r := Repository{URL: from}
	args := []string{"--git-dir=" + dir, "fetch", "--quiet", "--no-tags", "--force", "--no-recurse-submodules", "--no-write-fetch-head"}
	if filepath.IsAbs(from) {
		r.Local = from
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, localTime, &abi.Error{
			Code: abi.Timeout, Permanent: true, Field: "repo_url", Message: fmt.Sprintf("git fetch: repository %s was not read within %s", from, localTime),
			Hint: "a file of it may be a pipe: git -C " + gitexec.Quote(from) + " fsck shows it",
		})
		defer cancel()
		source, err := m.Open(ctx, from)
		if err != nil {
			if late := abi.As(context.Cause(ctx)); late != nil {
				return "", late
			}
			return "", err
		}
		args, from = append(args, "--update-shallow", m.UploadPack()), source
	}
	args = append(args, "--", from, refspec)
	measured := func() error { return nil }
	if m.MaxSize > 0 {
		var cancel context.CancelCauseFunc
		ctx, cancel = context.WithCancelCause(ctx)
		defer cancel(nil)
		measured = m.watchSize(ctx, dir, cancel)
	}
	a, err := git.Exec(ctx, m.Dir, m.SSH(), "", args...)
	if err == nil && a.Code != 0 && strings.Contains(a.Err, "cannot lock ref") {
		// A branch a is in the way of a/b although it is gone there. Only the reference goes: the
		// checkouts of running checks borrow the objects.
		if err = m.clear(ctx, dir, to); err == nil {
			a, err = git.Exec(ctx, m.Dir, m.SSH(), "", args...)
		}
	}
	if problem := measured(); problem != nil {
		return "", problem
	}
	if err != nil {
		if late := abi.As(context.Cause(ctx)); late != nil {
			return "", late
		}
		return "", err
	}
	if a.Code != 0 {
		return "", Failed("fetch", r, field, branch, a)
	}
	now := time.Now()
	return dir, os.Chtimes(dir, now, now) // Sweep sees that it is used
}
