package verify

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A repository is one that can be cloned.
type repository struct {
	url   string
	local string // folder, if it is on this machine
}

// scpLike matches user@host:path, another form of ssh://user@host/path.
var scpLike = lazyregexp.New(`^[A-Za-z0-9._-]+@[A-Za-z0-9.-]+:[^:][^\x00-\x1f]*$`)

// parseRepository reads a repository as a path, an https or an ssh URL. Others are
// refused: git would execute a program for some of them, and a password in a URL is
// shown in logs and lists of processes.
func parseRepository(text string) (repository, error) {
	refuse := func(format string, args ...any) (repository, error) {
		return repository{}, &abi.Error{Code: abi.BadFields, Permanent: true, Field: "repo_url", Message: "repo_url: " + fmt.Sprintf(format, args...)}
	}
	if text == "" || len(text) > 4096 || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return refuse("is missing, or no URL")
	}
	if filepath.IsAbs(text) {
		return repository{text, filepath.Clean(text)}, nil
	}
	if scpLike.MatchString(text) {
		return repository{url: text}, nil
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return refuse("is no URL")
	case u.Scheme == "file" && (u.Host == "" || u.Host == "localhost") && filepath.IsAbs(u.Path):
		return repository{text, filepath.Clean(u.Path)}, nil
	case u.Scheme != "https" && u.Scheme != "ssh":
		return refuse("scheme %.20q: want an absolute path, an https or an ssh URL", u.Scheme)
	case u.Host == "" || strings.HasPrefix(u.Host, "-"):
		return refuse("has no host")
	}
	if _, password := u.User.Password(); password || u.Scheme == "https" && u.User != nil {
		return refuse("a URL of %s has credentials: keep them in git's own configuration, or use an ssh key", u.Host)
	}
	return repository{url: u.String()}, nil
}

// validBranch is what a branch may be called: git's rules, without what a command
// line or a revision would read as something else.
var validBranch = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_./+#@=-]{0,250}$`)

func checkBranch(name string) error {
	if !validBranch.MatchString(name) || strings.Contains(name, "..") || strings.Contains(name, "@{") || strings.Contains(name, "//") ||
		strings.HasSuffix(name, "/") || strings.HasSuffix(name, ".lock") || strings.HasSuffix(name, ".") {
		return &abi.Error{Code: abi.BadFields, Permanent: true, Field: "branch_name", Message: fmt.Sprintf("branch_name: %.100q is not a valid name of a branch", name)}
	}
	return nil
}

// A checkout is a clone of one branch with a folder for what its commands write.
type checkout struct {
	dir     string // holds all
	tree    string // the work tree
	scratch string // HOME and TMPDIR of commands are below
	commit  string
}

// checkouts makes them.
type checkouts struct {
	git   gitexec.Runner
	dir   string // of this package's folders
	key   string // of ssh; "" is the user's own
	hosts string // file of known hosts; "" is the user's own

	mu    sync.Mutex
	locks map[string]*sync.Mutex // by folder of a mirror
}

// defaultBranch is what a mirror calls the default branch of its repository, which may
// have any name there.
const defaultBranch = "sentinel-default"

const keepMirrors = 30 * 24 * time.Hour

// sweep removes the checkouts that a crash left, and mirrors that nothing has used for
// a month.
func (c *checkouts) sweep() error {
	errs := []error{os.RemoveAll(c.checkoutDir())}
	entries, err := os.ReadDir(c.mirrorDir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > keepMirrors {
			errs = append(errs, os.RemoveAll(filepath.Join(c.mirrorDir(), e.Name())))
		}
	}
	return errors.Join(errs...)
}

func (c *checkouts) checkoutDir() string { return filepath.Join(c.dir, "checkouts") }
func (c *checkouts) mirrorDir() string   { return filepath.Join(c.dir, "repositories") }

// sshCommand is ssh with the configured key. Keys of hosts are always checked: a
// machine in between could send other code to execute.
func (c *checkouts) sshCommand() string {
	words := []string{"ssh", "-oBatchMode=yes", "-oStrictHostKeyChecking=yes"}
	if c.key != "" {
		words = append(words, "-oIdentitiesOnly=yes", "-i", "'"+strings.ReplaceAll(c.key, "'", `'\''`)+"'")
	}
	if c.hosts != "" {
		words = append(words, "-oUserKnownHostsFile='"+strings.ReplaceAll(c.hosts, "'", `'\''`)+"'")
	}
	return strings.Join(words, " ")
}

// make clones a branch. The clone borrows the objects of a repository on this machine,
// or of a mirror of one elsewhere, and has references and settings of its own, so that
// what commands do to it touches neither.
func (c *checkouts) make(ctx context.Context, r repository, branch string) (_ *checkout, err error) {
	if c.git.Program == "" {
		return nil, &abi.Error{Code: abi.Denied, Permanent: true, Message: "git: not on this machine", Hint: "install git, in an absolute folder of PATH"}
	}
	if err := os.MkdirAll(c.checkoutDir(), 0o700); err != nil {
		return nil, err
	}
	source := r.local
	if source == "" {
		if source, err = c.mirror(ctx, r.url, branch); err != nil {
			return nil, err
		}
	} else if _, err := os.Stat(source); err != nil {
		return nil, &abi.Error{Code: abi.NotFound, Permanent: true, Field: "repo_url", Message: fmt.Sprintf("repository %s: %v", source, errors.Unwrap(err))}
	}
	var name [8]byte
	rand.Read(name[:])
	out := &checkout{dir: filepath.Join(c.checkoutDir(), hex.EncodeToString(name[:]))}
	out.tree, out.scratch = filepath.Join(out.dir, "tree"), filepath.Join(out.dir, "scratch")
	if err := os.MkdirAll(out.scratch, 0o700); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = out.remove() // the next sweep does it
		}
	}()
	args := []string{"clone", "--quiet", "--shared", "--no-tags", "--single-branch", "--no-recurse-submodules"}
	if branch != "" {
		args = append(args, "--branch", branch)
	}
	a, err := c.git.Exec(ctx, c.checkoutDir(), "", "", append(args, "--", source, out.tree)...)
	if err != nil {
		return nil, err
	}
	if a.Code != 0 {
		return nil, c.failed("clone", r, branch, a)
	}
	a, err = c.git.Exec(ctx, out.tree, "", "", "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	if err == nil && a.Code != 0 {
		err = c.failed("rev-parse", r, branch, a)
	}
	out.commit = strings.TrimSpace(a.Out)
	return out, err
}

// failed is the error of a git that did not do its work.
func (c *checkouts) failed(operation string, r repository, branch string, a gitexec.Answer) error {
	lower := strings.ToLower(a.Err)
	if r.local != "" && strings.Contains(lower, "does not exist") {
		return &abi.Error{Code: abi.NotFound, Permanent: true, Field: "repo_url", Message: fmt.Sprintf("%s is not a git repository", r.local)}
	}
	if strings.Contains(lower, "remote branch") && strings.Contains(lower, "not found") || strings.Contains(lower, "couldn't find remote ref") {
		return &abi.Error{Code: abi.NotFound, Permanent: true, Field: "branch_name", Message: fmt.Sprintf("branch %s is not in %s", branch, r.url), Hint: "push it first"}
	}
	return gitexec.Fatal(operation, a)
}

// mirror fetches one branch into a bare repository of this machine.
func (c *checkouts) mirror(ctx context.Context, from, branch string) (string, error) {
	sum := sha256.Sum256([]byte(from))
	dir := filepath.Join(c.mirrorDir(), hex.EncodeToString(sum[:12])+".git")
	c.mu.Lock()
	if c.locks == nil {
		c.locks = map[string]*sync.Mutex{}
	}
	lock := c.locks[dir]
	if lock == nil {
		lock = new(sync.Mutex)
		c.locks[dir] = lock
	}
	c.mu.Unlock()
	lock.Lock()
	defer lock.Unlock()
	if _, err := os.Stat(filepath.Join(dir, "HEAD")); err != nil {
		if err := os.MkdirAll(c.mirrorDir(), 0o700); err != nil {
			return "", err
		}
		a, err := c.git.Exec(ctx, c.mirrorDir(), "", "", "init", "--quiet", "--bare", "--initial-branch="+defaultBranch, "--", dir)
		if err != nil {
			return "", err
		}
		if a.Code != 0 {
			return "", gitexec.Fatal("init", a)
		}
	}
	refspec := "+HEAD:refs/heads/" + defaultBranch
	if branch != "" {
		refspec = "+refs/heads/" + branch + ":refs/heads/" + branch
	}
	a, err := c.git.Exec(ctx, c.mirrorDir(), c.sshCommand(), "", "--git-dir="+dir, "fetch", "--quiet", "--no-tags", "--force", "--no-recurse-submodules", "--no-write-fetch-head",
		"--", from, refspec)
	if err != nil {
		return "", err
	}
	if a.Code != 0 {
		return "", c.failed("fetch", repository{url: from}, branch, a)
	}
	now := time.Now()
	return dir, os.Chtimes(dir, now, now) // sweep sees that it is used
}

// borrowed returns the folders of objects that the clone borrows.
func (c *checkout) borrowed() []string {
	text, err := os.ReadFile(filepath.Join(c.tree, ".git", "objects", "info", "alternates"))
	if err != nil {
		return nil // it has all objects itself
	}
	return strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
}

// remove removes a checkout. Commands may have taken the rights from folders.
func (c *checkout) remove() error {
	err := os.RemoveAll(c.dir)
	if err == nil {
		return nil
	}
	_ = filepath.WalkDir(c.dir, func(path string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(c.dir)
}
