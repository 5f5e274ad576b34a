package checkpoint

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
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/atomicfile"
	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
	"github.com/sentinel-runtime/sentinel/host/internal/rootfs"
	"github.com/sentinel-runtime/sentinel/internal/fairqueue"
	"github.com/sentinel-runtime/sentinel/internal/regularfile"
	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Options are what a Service needs. Dir is required.
type Options struct {
	Dir       string   // absolute folder of the repositories, for this service alone; made when needed
	Git       string   // program; default the git on PATH
	Keep      int      // checkpoints of a workspace, at least 4; default 100
	Bytes     int64    // of the repository of a workspace; default 2 GiB
	FileBytes int64    // of a file; of larger ones no content is kept; default 10 MiB
	Most      int      // workspaces; the one that was used least recently goes; default 50
	Exclude   []string // absolute folders that are not covered; default none
	// Limits of the ignored files whose content is kept: bytes of one, default 1 MiB; bytes and
	// number of all, default 64 MiB and 3,000.
	IgnoredFileBytes, IgnoredBytes int64
	IgnoredFiles                   int
	// HoldTree keeps confined commands that can write a workspace from being executed until release is
	// called; the error is conflict if one is. Default: there are none.
	HoldTree func(folder string) (release func(), err error)
	// Obeyed reports whether programs of the user obey what is at a path, relative to the workspace, as a
	// confined command must not make it: a restore leaves it as it is. Default: nothing.
	Obeyed func(path string) bool
	// At is called with the name of each state of an operation that a crash may leave;
	// default none.
	At func(state string)
}

// Limits of one workspace.
const (
	maxPaths = 2_000_000
	maxList  = 512 << 20 // bytes of a list of files
)

// A Service makes and restores checkpoints.
type Service struct {
	opt   Options
	git   gitexec.Runner
	locks sync.Map // folder of a repository to its *fairqueue.Queue, with one place
}

// New returns a Service.
func New(opt Options) *Service {
	if opt.Git == "" {
		opt.Git = gitexec.LookPath()
	}
	opt.Keep, opt.Bytes, opt.FileBytes, opt.Most = max(cmp.Or(opt.Keep, 100), 4), cmp.Or(opt.Bytes, 2<<30), cmp.Or(opt.FileBytes, 10<<20), cmp.Or(opt.Most, 50)
	opt.IgnoredFileBytes, opt.IgnoredBytes = cmp.Or(opt.IgnoredFileBytes, 1<<20), cmp.Or(opt.IgnoredBytes, 64<<20)
	opt.IgnoredFiles = cmp.Or(opt.IgnoredFiles, 3000)
	if opt.HoldTree == nil {
		opt.HoldTree = func(string) (func(), error) { return func() {}, nil }
	}
	if opt.Obeyed == nil {
		opt.Obeyed = func(string) bool { return false }
	}
	if opt.At == nil {
		opt.At = func(string) {}
	}
	return &Service{opt: opt, git: gitexec.Runner{Program: opt.Git, MaxOut: maxList}}
}

// A repository is that of one workspace, while its lock is held.
type repository struct {
	s         *Service
	workspace string            // absolute, with links resolved
	dir       string            // git directory
	exclude   []string          // folders that are not covered, relative and with a slash at their end
	loaded    map[string]*index // indexes by the id of their checkpoint
}

// with executes fn on the repository of a workspace, which is made if there is none. Operations on one
// repository wait in a queue for each agent or model that they are for; by is "" for a person. For another one
// workspace is a path without links: they could lead to folders in which it does not work.
func (s *Service) with(ctx context.Context, by, workspace string, fn func(*repository) error) error {
	if s.opt.Git == "" {
		return &abi.Error{Code: abi.Unavailable, Permanent: true, Message: "checkpoint: git is not on this machine", Hint: "install git, in an absolute folder of PATH"}
	}
	real, err := filepath.EvalSymlinks(workspace)
	if err != nil {
		return fmt.Errorf("checkpoint of %q: %w", workspace, err)
	}
	if by != "" && real != filepath.Clean(workspace) { // a link that was made since the call was admitted
		return &abi.Error{Code: abi.Conflict, Message: fmt.Sprintf("checkpoint of %q: a link leads to %q", workspace, real), Hint: "name the folder itself as the workspace"}
	}
	if info, err := os.Stat(real); err != nil || !info.IsDir() {
		return &abi.Error{Code: abi.BadFields, Permanent: true, Message: fmt.Sprintf("checkpoint of %q: not a folder", workspace)}
	}
	r := &repository{s: s, workspace: real, dir: s.repositoryOf(real), loaded: map[string]*index{}}
	for _, dir := range append([]string{s.opt.Dir}, s.opt.Exclude...) {
		if rel, err := filepath.Rel(real, rootfs.EvalLinks(dir)); err == nil && filepath.IsLocal(rel) {
			r.exclude = append(r.exclude, filepath.ToSlash(rel)+"/")
		}
	}
	leave, err := s.lock(r.dir).Enter(ctx, fairqueue.Of(by))
	if err != nil {
		return fmt.Errorf("checkpoint of %q: wait for the operations before it: %w", workspace, err)
	}
	defer leave()
	if err := r.prepare(); err != nil {
		return fmt.Errorf("checkpoint of %q: %w", workspace, storage(err))
	}
	return fn(r)
}

// repositoryOf returns the folder of the repository of a workspace.
func (s *Service) repositoryOf(workspace string) string {
	sum := sha256.Sum256([]byte("2\x00" + workspace)) // the second form of a repository
	return filepath.Join(s.opt.Dir, hex.EncodeToString(sum[:8]))
}

// lock returns the lock of a repository.
func (s *Service) lock(dir string) *fairqueue.Queue {
	lock, _ := s.locks.LoadOrStore(dir, fairqueue.New(1))
	return lock.(*fairqueue.Queue)
}

// settings are those that git has in the repository, whatever the user has configured. Each
// checkpoint is one pack: objects in files of their own take another process, and more time
// of each operation that counts or tidies them.
const settings = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = false\n" +
	"\tcompression = 1\n\tbigFileThreshold = 16m\n[pack]\n\tcompression = 1\n[fastimport]\n\tunpackLimit = 1\n"

// attributes keep git from converting a file or running a program for it.
const attributes = "* -text -eol -filter -ident -working-tree-encoding\n"

// prepare makes the repository, or repairs what others have changed in it: programs that
// runs execute have the rights of the user. What a git that was killed left is removed.
func (r *repository) prepare() error {
	if _, err := os.Stat(filepath.Join(r.dir, "workspace")); errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(r.s.opt.Dir, 0o700); err != nil {
			return err
		}
		if err := r.s.pruneRepositories(); err != nil {
			return err
		}
	}
	if err := r.removeLinks(); err != nil {
		return err
	}
	for _, dir := range []string{"objects/info", "objects/pack", "refs", "info"} {
		if err := os.MkdirAll(filepath.Join(r.dir, filepath.FromSlash(dir)), 0o700); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{
		"HEAD": "ref: refs/heads/none\n", "config": settings, "info/attributes": attributes, "info/exclude": "", "workspace": r.workspace + "\n",
	} {
		path := filepath.Join(r.dir, filepath.FromSlash(name))
		if now, err := regularfile.Read(path, 1<<20); err == nil && string(now) == text {
			continue
		}
		if err := atomicfile.Replace(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	if err := os.Chtimes(filepath.Join(r.dir, "workspace"), time.Time{}, time.Now()); err != nil { // for pruneRepositories
		return err
	}
	return r.tidy()
}

// removeLinks removes what would have git write to, tidy or read another repository: links, and the files by
// which a repository has the objects or settings of another one.
func (r *repository) removeLinks() error {
	var errs []error
	for _, dir := range []string{"", "objects", "refs", "info"} { // an outer one first
		dir = filepath.Join(r.dir, dir)
		if info, err := os.Lstat(dir); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			errs = append(errs, os.Remove(dir))
		}
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
		for _, e := range entries {
			if e.Type()&fs.ModeSymlink != 0 {
				errs = append(errs, os.Remove(filepath.Join(dir, e.Name())))
			}
		}
	}
	for _, name := range []string{"commondir", "config.worktree", "objects/info/alternates", "objects/info/http-alternates"} {
		errs = append(errs, removeIfThere(filepath.Join(r.dir, filepath.FromSlash(name))))
	}
	return errors.Join(errs...)
}

// tidy removes what a git that was killed left: temporary files, and locks, which would
// keep every other git out. No other operation is under way.
func (r *repository) tidy() error {
	var errs []error
	for _, pattern := range []string{"fast_import_crash_*", atomicfile.TempPrefix + "*", "*.lock", "refs/*.lock", "refs/checkpoints/*.lock", "objects/pack/tmp_*", "objects/pack/*.keep", "objects/??/tmp_*"} {
		files, err := filepath.Glob(filepath.Join(r.dir, filepath.FromSlash(pattern)))
		errs = append(errs, err)
		for _, file := range files {
			errs = append(errs, removeIfThere(file))
		}
	}
	return errors.Join(errs...)
}

// exec runs git on the repository and the workspace.
func (r *repository) exec(ctx context.Context, stdin io.Reader, args ...string) (gitexec.Answer, error) {
	return r.execTo(ctx, stdin, nil, args...)
}

// execTo is exec with an output that is not in the answer.
func (r *repository) execTo(ctx context.Context, stdin io.Reader, out io.Writer, args ...string) (gitexec.Answer, error) {
	git := r.s.git
	git.Out = out
	git.Env = []string{
		"GIT_DIR=" + r.dir, "GIT_WORK_TREE=" + r.workspace, "GIT_CONFIG_GLOBAL=" + os.DevNull,
	}
	own := []string{"-c", "core.protectNTFS=false", "-c", "core.protectHFS=false", "-c", "core.attributesFile=" + os.DevNull, "-c", "core.autocrlf=false"}
	return git.ExecFrom(ctx, r.workspace, "", stdin, append(own, args...)...)
}

// must runs git, and every exit code but 0 is an error.
func (r *repository) must(ctx context.Context, stdin string, args ...string) (string, error) {
	a, err := r.exec(ctx, strings.NewReader(stdin), args...)
	switch {
	case err != nil:
	case a.Code != 0:
		err = storage(gitexec.Fatal(args[0], a))
	case a.Cut:
		err = tooMany()
	}
	return a.Out, err
}

// tooMany is the error of a workspace with more files than a checkpoint may have.
func tooMany() error {
	return &abi.Error{
		Code: abi.Limit, Permanent: true, Message: fmt.Sprintf("checkpoint: more than %d files and folders, or names of more than %d MiB", maxPaths, maxList>>20),
		Hint: "use a smaller folder as the workspace",
	}
}

// storage gives the error of a disk without space a code and a hint.
func storage(err error) error {
	text := err.Error()
	full := errors.Is(err, syscall.ENOSPC)
	for _, words := range []string{"No space left on device", "Out of diskspace", "Disk quota exceeded"} {
		full = full || strings.Contains(text, words)
	}
	if !full {
		return err
	}
	return &abi.Error{
		Code: abi.Limit, Permanent: true, Message: "checkpoint: the disk of the state folder is full: " + textcut.Mark(text, 300),
		Hint: "free space, or put the state on another disk with --state DIR; no file of the workspace was changed",
	}
}
