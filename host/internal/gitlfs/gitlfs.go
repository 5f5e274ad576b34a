// Package gitlfs keeps the objects of Git LFS together with the commits that name them: it
// copies those of a clone into the store of the repository that it borrows from, and sends those of
// a branch before the branch is pushed.
//
// Git LFS does the latter with a hook, and hooks are not executed.
package gitlfs

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Filters are the filters of Git LFS as git lfs install configures them. A repository may name
// them, because git-lfs is found on PATH as git is.
var Filters = []string{
	"git-lfs clean -- %f", "git-lfs smudge -- %f", "git-lfs smudge --skip -- %f", "git-lfs filter-process", "git-lfs filter-process --skip",
}

// A Git runs git in the repository that a call is about.
type Git func(ctx context.Context, stdin string, args ...string) (gitexec.Answer, error)

// CloneFilters returns the arguments of git clone for the filters of Git LFS that only the
// configuration of the repository itself names. Other filters there may be any program.
func CloneFilters(ctx context.Context, git Git) (args []string, err error) {
	a, err := git(ctx, "", "config", "--local", "--null", "--get-regexp", `^filter\.lfs\.(clean|smudge|process|required)$`)
	if err != nil || a.Code != 0 {
		return nil, err
	}
	for entry := range strings.SplitSeq(a.Out, "\x00") {
		key, value, _ := strings.Cut(entry, "\n")
		if slices.Contains(Filters, value) || key == "filter.lfs.required" && (value == "true" || value == "false") {
			args = append(args, "-c", key+"="+value)
		}
	}
	return args, nil
}

// Store returns the folder with the objects of a repository, where its own git-lfs finds them.
// dir is its git directory. A folder elsewhere has to be named by the user's configuration,
// because the one of the repository may be of another user.
func Store(ctx context.Context, git Git, dir string) (string, error) {
	a, err := git(ctx, "", "config", "--show-scope", "--null", "--type=path", "--get", "lfs.storage")
	if err != nil || a.Code == 1 {
		return filepath.Join(dir, "lfs", "objects"), err
	}
	if a.Code != 0 {
		return "", gitexec.Fatal("config", a)
	}
	scope, value, _ := strings.Cut(strings.TrimRight(a.Out, "\x00"), "\x00")
	where := filepath.FromSlash(value)
	if !filepath.IsAbs(where) {
		where = filepath.Join(dir, where)
	}
	inside, err := filepath.Rel(dir, where)
	if scope != "system" && scope != "global" && (err != nil || !filepath.IsLocal(inside)) {
		return "", &abi.Error{
			Code: abi.Denied, Permanent: true, Field: "repo",
			Message: fmt.Sprintf("the repository's configuration has lfs.storage, which is outside of it: %q", value),
			Hint:    "if you trust it: git config --global lfs.storage " + gitexec.Quote(value),
		}
	}
	return filepath.Join(where, "objects"), nil
}

var objectName = lazyregexp.New(`^[0-9a-f]{64}$`)

// Share copies the objects of a clone into a store, as far as they are missing there. What is
// executed in the clone may have written them, so each is compared with its name, and links
// are not followed. dir is the git directory of the clone.
func Share(ctx context.Context, dir, store string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	err = fs.WalkDir(root.FS(), "lfs/objects", func(p string, e fs.DirEntry, err error) error {
		name := path.Base(p)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return err
		case !e.Type().IsRegular() || !objectName.MatchString(name):
			return nil
		}
		to := filepath.Join(store, name[:2], name[2:4], name)
		if _, err := os.Lstat(to); err == nil {
			return nil
		}
		return share(root, p, to)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Fetch copies objects between stores, as far as the first has them and the second does not.
// Links are not followed.
func Fetch(ctx context.Context, from, store string, objects []string) error {
	root, err := os.OpenRoot(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range objects {
		p, to := path.Join(name[:2], name[2:4], name), filepath.Join(store, name[:2], name[2:4], name)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if info, err := root.Lstat(p); err != nil || !info.Mode().IsRegular() {
			continue
		}
		if _, err := os.Lstat(to); err == nil {
			continue
		}
		if err := share(root, p, to); err != nil {
			return err
		}
	}
	return nil
}

// share copies one object, which is complete at once.
func share(root *os.Root, from, to string) (err error) {
	in, err := root.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	out, err := os.CreateTemp(filepath.Dir(to), ".sentinel-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = out.Close()
			_ = os.Remove(out.Name())
		}
	}()
	sum := sha256.New()
	if _, err = io.Copy(io.MultiWriter(out, sum), in); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != filepath.Base(to) { // it is no object
		_ = out.Close()
		return os.Remove(out.Name())
	}
	if err = errors.Join(out.Chmod(0o644), out.Sync(), out.Close()); err != nil {
		return err
	}
	return os.Rename(out.Name(), to)
}

// Bounds of the search for pointers.
const (
	maxPointer = 1024 // bytes of a file that names an object
	perCall    = 2000 // files that one git reads
	perPush    = 200  // objects that one git-lfs sends
)

var pointer = lazyregexp.New(`(?m)^oid sha256:([0-9a-f]{64})$`)

// Objects returns the objects that a commit and its history name and others do not: what a push
// of commit needs, if the remote has the commits that without names, as arguments of git
// rev-list. With COMMIT^{tree} they are those that a checkout needs.
func Objects(ctx context.Context, git Git, commit string, without ...string) ([]string, error) {
	a, err := git(ctx, "", "grep", "-q", "--fixed-strings", "-e", "filter=lfs", commit, "--", ".gitattributes", ":(glob)**/.gitattributes")
	if err != nil || a.Code == 1 {
		return nil, err
	}
	if a.Code != 0 {
		return nil, gitexec.Fatal("grep", a)
	}
	args := append([]string{"rev-list", "--objects", "--no-object-names", "--filter=blob:limit=1k", commit, "--not"}, without...)
	if a, err = git(ctx, "", args...); err != nil {
		return nil, err
	}
	if a.Code != 0 || a.Cut {
		return nil, gitexec.Fatal("rev-list", a)
	}
	found := map[string]bool{}
	for part := range slices.Chunk(strings.Fields(a.Out), perCall) {
		a, err := git(ctx, strings.Join(part, "\n")+"\n", "cat-file", "--batch-check=%(objecttype) %(objectsize) %(objectname)")
		if err != nil {
			return nil, err
		}
		var blobs []string
		for line := range strings.Lines(a.Out) {
			size, name := 0, ""
			if n, _ := fmt.Sscanf(line, "blob %d %s", &size, &name); n == 2 && size < maxPointer {
				blobs = append(blobs, name)
			}
		}
		if len(blobs) == 0 {
			continue
		}
		if a, err = git(ctx, strings.Join(blobs, "\n")+"\n", "cat-file", "--batch"); err != nil {
			return nil, err
		}
		for text := range strings.SplitSeq(a.Out, "version https://git-lfs.github.com/spec/v1\n") {
			if name := pointer.FindStringSubmatch(text); name != nil {
				found[name[1]] = true
			}
		}
	}
	all := make([]string, 0, len(found))
	for name := range found {
		all = append(all, name)
	}
	slices.Sort(all)
	return all, nil
}

// Server returns the settings by which git-lfs talks to the server of a remote: the one that the
// configuration of git names, or .lfsconfig on the default branch of the remote, or else that of its URL.
// Without them git-lfs obeys .lfsconfig of what is checked out: the author of a branch would choose which
// server gets the objects that it names, and which one this machine asks. git is one of the repository that
// has the remote, or that mirrors it.
func Server(ctx context.Context, git Git, remote, url string) (settings [][2]string, err error) {
	named, err := serversOf(ctx, git)
	if err != nil {
		return nil, err
	}
	own, err := defaultConfig(ctx, git, remote)
	if err != nil {
		return nil, err
	}
	if own != "" {
		of, err := serversOf(ctx, git, "--blob="+own)
		if err != nil {
			return nil, err
		}
		for key, value := range of {
			named[key] = cmp.Or(named[key], value)
		}
	}
	ofRemote, derived := "remote."+remote+".", serverOf(url)
	return [][2]string{
		{"lfs.url", cmp.Or(named["lfs.url"], named[ofRemote+"lfsurl"], derived)},
		{"lfs.pushurl", cmp.Or(named["lfs.pushurl"], named["lfs.url"], named[ofRemote+"lfspushurl"], named[ofRemote+"lfsurl"], derived)},
	}, nil
}

// Local returns the settings by which git-lfs asks nothing but a repository on this machine, by its git directory.
func Local(dir string) [][2]string {
	return [][2]string{{"lfs.url", serverOf(dir)}, {"lfs.pushurl", serverOf(dir)}}
}

// serversOf returns the servers that a configuration names, by setting.
func serversOf(ctx context.Context, git Git, of ...string) (map[string]string, error) {
	a, err := git(ctx, "", append(append([]string{"config"}, of...), "--null", "--get-regexp", `^(lfs|remote\..*)\.(lfs)?(push)?url$`)...)
	if err != nil {
		return nil, err
	}
	if a.Code > 1 {
		return nil, gitexec.Fatal("config", a)
	}
	named := map[string]string{}
	for entry := range strings.SplitSeq(a.Out, "\x00") {
		key, value, _ := strings.Cut(entry, "\n")
		named[key] = value
	}
	return named, nil
}

// defaultConfig returns the object that is .lfsconfig on the default branch of a remote, "" for none.
func defaultConfig(ctx context.Context, git Git, remote string) (string, error) {
	branch := "refs/remotes/" + remote + "/HEAD"
	if a, err := git(ctx, "", "rev-parse", "--is-bare-repository"); err != nil {
		return "", err
	} else if strings.TrimSpace(a.Out) == "true" {
		branch = "HEAD"
	}
	// rev-parse would complete a name that is missing: to a branch of the name refs/remotes/origin/HEAD.
	a, err := git(ctx, "", "show-ref", "--verify", "--hash", branch)
	if err != nil || a.Code != 0 {
		return "", err
	}
	if a, err = git(ctx, "", "rev-parse", "--quiet", "--verify", strings.TrimSpace(a.Out)+":.lfsconfig"); err != nil || a.Code != 0 {
		return "", err
	}
	return strings.TrimSpace(a.Out), nil
}

// serverOf returns the server of a remote where no setting names another one, as git-lfs derives it.
func serverOf(url string) string {
	switch {
	case filepath.IsAbs(url):
		return "file://" + filepath.ToSlash(url)
	case !strings.HasPrefix(url, "http://") && !strings.HasPrefix(url, "https://"):
		return url
	}
	return strings.TrimSuffix(strings.TrimSuffix(url, "/"), ".git") + ".git/info/lfs"
}

// WithSettings adds settings to variables of git that may have some, as those of a credential.
func WithSettings(env []string, settings ...[2]string) (all []string) {
	n := 0
	for _, v := range env {
		if strings.HasPrefix(v, "GIT_CONFIG_KEY_") {
			n++
		}
		if !strings.HasPrefix(v, "GIT_CONFIG_COUNT=") {
			all = append(all, v)
		}
	}
	for _, s := range settings {
		all = append(all, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", n, s[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", n, s[1]))
		n++
	}
	return append(all, fmt.Sprintf("GIT_CONFIG_COUNT=%d", n))
}

// Push sends objects to a remote, by its name or URL. git has the settings of [Server]. Without git-lfs it is
// an error: a branch whose objects are missing at the remote cannot be checked out by others.
func Push(ctx context.Context, git Git, remote string, objects []string) error {
	if filepath.IsAbs(remote) {
		remote = "file://" + filepath.ToSlash(remote)
	}
	for part := range slices.Chunk(objects, perPush) {
		a, err := git(ctx, "", append([]string{"lfs", "push", "--object-id", remote}, part...)...)
		switch {
		case err != nil:
			return err
		case a.Code != 0 && strings.Contains(a.Err, "is not a git command"):
			return &abi.Error{
				Code: abi.Denied, Permanent: true,
				Message: fmt.Sprintf("the branch names %d objects of Git LFS, which cannot be sent without git-lfs: nothing is pushed", len(objects)),
				Hint:    "install git-lfs in an absolute folder of PATH",
			}
		case a.Code != 0:
			e := abi.As(gitexec.Fatal("lfs push", a))
			e.Message = "objects of Git LFS were not sent, so nothing is pushed: " + e.Message
			return e
		}
	}
	return nil
}
