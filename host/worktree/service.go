package worktree

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/atomicfile"
	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
	"github.com/sentinel-runtime/sentinel/host/internal/gitsource"
	"github.com/sentinel-runtime/sentinel/host/internal/trash"
	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/internal/regularfile"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// A Ticket is what a worktree needs to know of one.
type Ticket struct {
	ID      string
	RepoURL string
	Branch  string
	Base    string
	Token   uint64 // of its claim; 0 if it is not claimed
	// Verified is the commit that the verification passed for, "" if none has passed that still
	// counts.
	Verified string
}

// Options are what a Service needs. Dir and Ticket are required.
type Options struct {
	Dir string // absolute folder of the worktrees, for this service alone; made when needed
	// Store is the identity of the store with the tickets, letters and digits. It is a part of
	// the names of worktrees and references, because another store in the same place has
	// tickets with the same ids. Default none.
	Store string
	// Ticket returns a ticket. A token other than 0 that is not that of its claim is the
	// error conflict, a ticket that does not exist the error not_found.
	Ticket     func(ctx context.Context, id string, token uint64) (Ticket, error)
	Most       int      // worktrees at one time; default 16
	Bytes      int64    // of all worktrees; default 10 GiB
	Git        string   // program; default the git on PATH
	SSHKey     string   // file of the private key for ssh; default the user's own
	KnownHosts string   // file of known keys of hosts; default the user's own
	Read       []string // folders that a repository may lead to, see [Add.Bound]; default none
	// Credential returns what https remotes of a server get; default none.
	Credential func() (gitsource.Credential, error)
	// Check returns an error if a confined command that is being executed may have made the repository of
	// a folder: callers of whom [Add.Bound] is true do not work in it. Default: it never has.
	Check func(folder string) error
	// HoldTree keeps confined commands that can write a work tree from being executed until release is
	// called; the error is conflict if one is. Default: there are none.
	HoldTree func(folder string) (release func(), err error)
	// Hides reports whether the changes of a file, relative to its repository, are left out of
	// the texts of Diff and Rebase, because they become prompts and models do not read the
	// file; default none.
	Hides func(path string) bool
	// Sealed is Hides by the content of a file too, such as a private key in it; default by the name alone.
	Sealed func(path string, data []byte) bool
	Logger *slog.Logger // default discards
	// At is called with the name of each state of a step that a crash may leave; default
	// none.
	At func(state string)
}

// A Service makes and removes worktrees.
type Service struct {
	opt     Options
	git     gitexec.Runner
	mirrors gitsource.Mirrors
	began   time.Time
	removed *trash.Bin // of worktrees

	locks     sync.Map   // name of a worktree to its *sync.Mutex
	reserving sync.Mutex // counting worktrees, and making the folder of one more
}

// New returns a Service.
func New(opt Options) *Service {
	if opt.Git == "" {
		opt.Git = gitexec.LookPath()
	}
	opt.Most, opt.Bytes = cmp.Or(opt.Most, 16), cmp.Or(opt.Bytes, 10<<30)
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	if opt.Check == nil {
		opt.Check = func(string) error { return nil }
	}
	if opt.HoldTree == nil {
		opt.HoldTree = func(string) (func(), error) { return func() {}, nil }
	}
	if opt.At == nil {
		opt.At = func(string) {}
	}
	git := gitexec.Runner{Program: opt.Git}
	removed := &trash.Bin{Dir: filepath.Join(opt.Dir, "removed"), Logger: opt.Logger}
	return &Service{opt: opt, git: git, began: time.Now(), removed: removed, mirrors: gitsource.Mirrors{
		Git: git, Dir: filepath.Join(opt.Dir, "repositories"), Removed: removed, Key: opt.SSHKey, Hosts: opt.KnownHosts, MaxSize: opt.Bytes, Read: opt.Read, Auth: opt.Credential,
	}}
}

// Close waits until the files of removed worktrees are deleted. Other calls must have returned.
func (s *Service) Close() { s.removed.Close() }

// A Worktree describes one.
type Worktree struct {
	Ticket     string    `json:"ticket"`
	Path       string    `json:"path" jsonschema:"folder with the files, to be the workspace of a run"`
	Branch     string    `json:"branch"`
	Base       string    `json:"base" jsonschema:"branch that it began from"`
	BaseCommit string    `json:"base_commit" jsonschema:"commit of the base that it stands on"`
	Commit     string    `json:"commit" jsonschema:"newest commit that was reported"`
	Token      uint64    `json:"token" jsonschema:"of the claim that it belongs to"`
	CreatedAt  time.Time `json:"created_at"`
}

// state is what is durable about a worktree. It is written when the worktree is complete.
type state struct {
	Worktree
	Store   string `json:"store,omitempty"` // [Options.Store]
	RepoURL string `json:"repo_url"`
	// ReadOnly says that it is for a review, and on no branch.
	ReadOnly bool   `json:"read_only,omitempty"`
	Source   string `json:"source"` // git directory that the objects are borrowed from
	Config   string `json:"config"` // of the clone; what is executed in the worktree cannot change it for long
	From     string `json:"from"`   // commit before the step with Key
	Key      string `json:"key,omitempty"`

	Unresolved *unresolved `json:"unresolved,omitempty"` // conflict that the next commit resolves
}

// A tree is a worktree whose lock is held.
type tree struct {
	s    *Service
	name string
	state
	saved []byte // what the file of the record has; nil if that is not known

	verified string // [Ticket.Verified] of its ticket
	bound    bool   // [Add.Bound]
}

var safeName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// idName returns the name of a ticket in branches: its id, or a digest of an id that git or a
// file system would read as something else.
func idName(id string) string {
	if safeName.MatchString(id) && gitsource.ValidBranch(id) && len(id) <= 80 {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "id-" + hex.EncodeToString(sum[:12])
}

// BranchOf returns the branch of a ticket that names none.
func BranchOf(id string) string { return branchFolder + "/" + idName(id) }

// nameOf returns the name of a ticket's folder and references: it is of one ticket of one store.
func (s *Service) nameOf(id string) string {
	if s.opt.Store == "" {
		return idName(id)
	}
	return idName(id) + "-" + s.opt.Store
}

// errOtherStore is the error of a worktree that belongs to another store.
var errOtherStore = errors.New("it belongs to another store, whose state folder was here before")

func (s *Service) dir(name string) string  { return filepath.Join(s.opt.Dir, "trees", name) }
func (s *Service) file(name string) string { return filepath.Join(s.dir(name), "worktree.json") }
func (t *tree) gitDir() string             { return filepath.Join(t.s.dir(t.name), "git") }
func (t *tree) lfsDir() string             { return filepath.Join(t.gitDir(), "lfs", "objects") }
func (t *tree) ref(kind string) string     { return "refs/sentinel/" + kind + "/" + t.name }
func fail(code abi.Code, text string) error {
	return &abi.Error{Code: code, Permanent: true, Message: text}
}
func conflict(format string, a ...any) error { return fail(abi.Conflict, fmt.Sprintf(format, a...)) }
func branchRef(branch string) (ref string)   { return "refs/heads/" + branch }
func (t *tree) attempt(token uint64) string  { return fmt.Sprintf("%s/%d", t.ref("attempts"), token) }

// GitDir returns the git directory of the worktree in a folder, whose links are resolved, "" if this
// service has made none there.
func (s *Service) GitDir(folder string) string {
	trees, err := filepath.EvalSymlinks(filepath.Join(s.opt.Dir, "trees"))
	name := filepath.Base(filepath.Dir(folder))
	if err != nil || folder != filepath.Join(trees, name, "tree") {
		return ""
	}
	t, err := s.read(name)
	if err != nil {
		return ""
	}
	return t.gitDir()
}

// lock returns the lock of a worktree.
func (s *Service) lock(name string) *sync.Mutex {
	l, _ := s.locks.LoadOrStore(name, new(sync.Mutex))
	return l.(*sync.Mutex)
}

// read reads what is durable about a worktree; the error is fs.ErrNotExist if there is
// none that is complete.
func (s *Service) read(name string) (*tree, error) {
	raw, err := regularfile.Read(s.file(name), regularfile.Unlimited)
	if err != nil {
		return nil, err
	}
	t := &tree{s: s, name: name}
	err = strictjson.DecodeOpen(raw, &t.state, strictjson.Unlimited())
	if err == nil && t.Store != s.opt.Store {
		return nil, errOtherStore
	}
	if err != nil || s.nameOf(t.Ticket) != name || !gitsource.ValidBranch(t.Branch) || !gitsource.ValidBranch(t.Base) {
		return nil, fmt.Errorf("worktree %s: its record cannot be read (a person removes it with force)", name)
	}
	t.saved = raw
	t.Path = filepath.Join(s.dir(name), "tree")
	return t, nil
}

// save makes the state durable. A state that is durable already is not written again,
// because two fsyncs take as long as a small git command.
func (t *tree) save() error {
	raw, err := json.Marshal(t.state)
	if err != nil || bytes.Equal(raw, t.saved) {
		return err
	}
	if err := atomicfile.Replace(t.s.file(t.name), raw, 0o600); err != nil {
		t.saved = nil
		return err
	}
	t.saved = raw
	return nil
}

// with executes a step on the worktree of a ticket, for the holder of its claim.
func (s *Service) with(ctx context.Context, id string, token uint64, fn func(*tree) error) error {
	name := s.nameOf(id)
	l := s.lock(name)
	l.Lock()
	defer l.Unlock()
	ticket, err := s.ticket(ctx, id, token) // the claim lasts: Hold has the lock too
	if err != nil {
		return err
	}
	t, err := s.read(name)
	if errors.Is(err, fs.ErrNotExist) {
		return &abi.Error{Code: abi.NotFound, Permanent: true, Field: "ticket", Message: fmt.Sprintf("ticket %s has no worktree", id), Hint: "worktree/add makes one"}
	}
	if err != nil {
		return err
	}
	if t.Ticket != id || t.Token != ticket.Token {
		return &abi.Error{Code: abi.Conflict, Permanent: true, Field: "ticket", Message: fmt.Sprintf("the worktree of ticket %s belongs to claim %d, which has ended", t.Ticket, t.Token), Hint: "worktree/add makes one for the present claim"}
	}
	t.verified = ticket.Verified
	return t.step(ctx, func() error { return fn(t) })
}

// step repairs the worktree and calls fn, while no confined command that can write its files is executed.
func (t *tree) step(ctx context.Context, fn func() error) error {
	release, err := t.s.opt.HoldTree(t.Path)
	if err != nil {
		return err
	}
	defer release()
	if err := t.repair(ctx); err != nil {
		return err
	}
	return fn()
}

// Hold calls fn while no step changes the worktree or branch of a ticket, with the commit that
// the worktree of the present claim has pushed last, "" if there is none.
func (s *Service) Hold(ctx context.Context, id string, fn func(pushed string) error) error {
	name := s.nameOf(id)
	l := s.lock(name)
	l.Lock()
	defer l.Unlock()
	t, err := s.read(name)
	if errors.Is(err, fs.ErrNotExist) {
		return fn("")
	}
	if err != nil {
		return err
	}
	ticket, err := s.opt.Ticket(ctx, id, 0)
	if err != nil {
		return err
	}
	if t.Ticket != id || t.Token != ticket.Token || t.ReadOnly {
		return fn("") // of an earlier claim, or for a review
	}
	pushed, err := t.source(ctx, "rev-parse", "--verify", "--quiet", t.ref("pushed"))
	if err != nil {
		return err
	}
	return fn(pushed)
}

// sameCommit is the error conflict if the newest commit is not the one that was verified, while
// the verdict counts: what is proposed would be taken for what was verified.
func (t *tree) sameCommit() error {
	if t.verified == "" || t.verified == t.Commit {
		return nil
	}
	return &abi.Error{Code: abi.Conflict, Permanent: true, Field: "ticket", Message: fmt.Sprintf("ticket %s: verified %.7s; the branch is at %.7s: verify again", t.Ticket, t.verified, t.Commit),
		Hint: `verify/run {"ticket_id": "` + t.Ticket + `"}`}
}

// change is with for a step that changes the branch.
func (s *Service) change(ctx context.Context, id string, token uint64, fn func(*tree) error) error {
	return s.with(ctx, id, token, func(t *tree) error {
		if t.ReadOnly {
			return t.readOnly()
		}
		return fn(t)
	})
}

// readOnly is the error of a step that a worktree for a review does not allow.
func (t *tree) readOnly() error {
	return &abi.Error{Code: abi.Conflict, Permanent: true, Field: "ticket", Message: fmt.Sprintf("the worktree of ticket %s is for a review: its branch is not changed", t.Ticket), Hint: "ticket/reject sends the work back"}
}

// ticket returns a ticket that is claimed.
func (s *Service) ticket(ctx context.Context, id string, token uint64) (Ticket, error) {
	if s.git.Program == "" {
		return Ticket{}, &abi.Error{Code: abi.Denied, Permanent: true, Message: "git: not on this machine", Hint: "install git, in an absolute folder of PATH"}
	}
	ticket, err := s.opt.Ticket(ctx, id, token)
	if err != nil {
		return ticket, err
	}
	if ticket.Token == 0 {
		return ticket, &abi.Error{Code: abi.Conflict, Permanent: true, Field: "ticket", Message: fmt.Sprintf("ticket %s is not claimed", id), Hint: "ticket/claim it first: a worktree belongs to a claim"}
	}
	return ticket, nil
}

// repair undoes what a crash left: the locks of a git that was killed and a rebase that
// did not end. The settings of the clone are those that it was made with.
func (t *tree) repair(ctx context.Context) error {
	err := filepath.WalkDir(t.gitDir(), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "objects":
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".lock"):
			return nil
		}
		if info, err := d.Info(); err != nil || !info.ModTime().Before(t.s.began) {
			return nil // of a git that a command of this process started
		}
		return os.Remove(path)
	})
	if err != nil {
		return fmt.Errorf("worktree %s: %w", t.Ticket, err)
	}
	config := filepath.Join(t.gitDir(), "config")
	if now, err := regularfile.Read(config, 1<<20); err != nil || string(now) != t.Config {
		if err := atomicfile.Replace(config, []byte(t.Config), 0o600); err != nil {
			return err
		}
	}
	if err := t.abortRebase(ctx); err != nil {
		return err
	}
	if t.Unresolved != nil && !t.Unresolved.Placed {
		return t.place(ctx)
	}
	return nil
}

// exec runs git on the worktree. It does not look at the file .git in the tree, which
// belongs to what is executed there.
func (t *tree) exec(ctx context.Context, stdin string, args ...string) (gitexec.Answer, error) {
	return t.run(ctx, nil, stdin, args...)
}

// writesFiles has what git does with files of a commit, which git-lfs may ask for.
var writesFiles = map[string]bool{"checkout": true, "rebase": true, "reset": true}

// run is exec with further variables.
func (t *tree) run(ctx context.Context, env []string, stdin string, args ...string) (gitexec.Answer, error) {
	if writesFiles[args[0]] {
		remote, err := t.lfsRemote(ctx)
		if err != nil {
			return gitexec.Answer{}, err
		}
		env = slices.Concat(env, remote)
	}
	git := t.s.git
	git.Env = append([]string{"GIT_DIR=" + t.gitDir(), "GIT_WORK_TREE=" + t.Path}, env...)
	return git.Exec(ctx, t.Path, t.s.mirrors.SSH(), stdin, args...)
}

// identity is a name to commit under if the user has configured none.
func (t *tree) identity(ctx context.Context) ([]string, error) {
	a, err := t.exec(ctx, "", "var", "GIT_COMMITTER_IDENT")
	if err != nil || a.Code == 0 {
		return nil, err
	}
	const name, mail = "sentinel", "sentinel@localhost"
	return []string{"GIT_AUTHOR_NAME=" + name, "GIT_AUTHOR_EMAIL=" + mail, "GIT_COMMITTER_NAME=" + name, "GIT_COMMITTER_EMAIL=" + mail}, nil
}

// must runs git, and every exit code but 0 is an error.
func (t *tree) must(ctx context.Context, operation string, args ...string) (string, error) {
	a, err := t.exec(ctx, "", args...)
	if err == nil && a.Code != 0 {
		err = gitexec.Fatal(operation, a)
	}
	return strings.TrimRight(a.Out, "\n"), err
}

// source runs git in the repository that the objects are borrowed from, and returns "" if
// git says no.
func (t *tree) source(ctx context.Context, args ...string) (string, error) {
	a, err := t.inSource(ctx, "", args...)
	if err != nil || a.Code != 0 {
		return "", err
	}
	return strings.TrimSpace(a.Out), nil
}

// An update is a change of a reference.
type update struct{ ref, from, to string } // from "" makes it

// publish changes references of the repository together, if they are as they were. A
// branch that is checked out there is not changed.
func (t *tree) publish(ctx context.Context, updates ...update) error {
	if err := t.shareObjects(ctx); err != nil {
		return err
	}
	service, err := t.s.git.ReceivePack(ctx, []string{t.Source}, "receive.denyCurrentBranch=refuse", "receive.denyNonFastForwards=false")
	if err != nil {
		return err
	}
	args := []string{"push", "--porcelain", "--quiet", "--atomic", "--no-verify", "--no-signed", "--recurse-submodules=no", "--receive-pack=" + service}
	for _, u := range updates {
		args = append(args, "--force-with-lease="+u.ref+":"+u.from)
	}
	args = append(args, "--", t.Source)
	for _, u := range updates {
		args = append(args, u.to+":"+u.ref)
	}
	a, err := t.exec(ctx, "", args...)
	switch {
	case err != nil || a.Code == 0:
		return err
	case strings.Contains(a.Out, "checked out"):
		return &abi.Error{Code: abi.Conflict, Permanent: true, Message: fmt.Sprintf("branch %s is checked out in the user's repository", t.Branch), Hint: "switch to another branch there"}
	case strings.Contains(a.Out, "proc-receive"): // a list of values, which no setting takes back
		return &abi.Error{Code: abi.Denied, Permanent: true, Message: fmt.Sprintf("repository %s gives branches to a hook (receive.procReceiveRefs), and no hook is executed, so branch %s is not made", t.RepoURL, t.Branch),
			Hint: "git -C " + gitexec.Quote(t.Source) + " config --unset-all receive.procReceiveRefs"}
	case strings.Contains(a.Out, "cannot create 'refs/"), strings.Contains(a.Err, "cannot create 'refs/"):
		return &abi.Error{Code: abi.Conflict, Permanent: true, Field: "branch", Message: fmt.Sprintf("branch %s cannot be made in %s: a branch is named as a folder of it", t.Branch, t.RepoURL), Hint: "rename that branch, or name another one for the ticket"}
	case strings.Contains(a.Err, "unable to create temporary object directory"), strings.Contains(a.Err, "unable to write file"):
		return &abi.Error{Code: abi.Unavailable, Message: fmt.Sprintf("repository %s cannot be written, so branch %s is not made", t.RepoURL, t.Branch), Hint: "check the rights of its folder .git, and its disk"}
	case strings.Contains(a.Out, "stale info"), strings.Contains(a.Out, "failed to update ref"):
		return conflict("branch %s of ticket %s was changed by another program since the worktree was made", t.Branch, t.Ticket)
	}
	return gitexec.Fatal("push", a)
}

// size returns the bytes of the files below a folder, as far as they can be listed.
func size(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // what disappears meanwhile takes no space
		}
		if info, err := d.Info(); err == nil {
			n += info.Size()
		}
		return nil
	})
	return n
}

// fits is an error if the worktrees have more bytes than they may have.
func (s *Service) fits(name string) error {
	all := size(filepath.Join(s.opt.Dir, "trees"))
	if all <= s.opt.Bytes {
		return nil
	}
	one := size(s.dir(name))
	return &abi.Error{Code: abi.Limit, Permanent: true, Message: fmt.Sprintf("worktrees have %d MiB, at most %d: that of this ticket has %d", all>>20, s.opt.Bytes>>20, one>>20),
		Hint: "remove files that do not belong there, or a worktree of " + strings.Join(s.tickets(name), ", ") + " with worktree/remove, or raise worktrees.size"}
}

// tickets returns the tickets of the other worktrees.
func (s *Service) tickets(name string) (ids []string) {
	for _, other := range s.names() {
		if t, err := s.read(other); err == nil && other != name {
			ids = append(ids, t.Ticket)
		}
	}
	if len(ids) == 0 {
		return []string{"no other ticket"}
	}
	return ids
}

// names returns the folders of worktrees, complete or not.
func (s *Service) names() (names []string) {
	entries, _ := os.ReadDir(filepath.Join(s.opt.Dir, "trees"))
	for _, e := range entries {
		if e.IsDir() && safeName.MatchString(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names
}

// Published returns the copy of a repository on another machine in which the worktree of a
// ticket has a branch, "" if there is none. What is committed there is not pushed before
// [Service.Push].
func (s *Service) Published(repoURL, branch string) string {
	for _, name := range s.names() {
		t, err := s.read(name)
		if err != nil || t.ReadOnly || t.Branch != branch {
			continue
		}
		if repo, err := gitsource.Parse("repo", t.RepoURL); err == nil && repo.Local == "" && repo.URL == repoURL {
			return t.Source
		}
	}
	return ""
}

// List returns the worktrees, the oldest first.
func (s *Service) List() ([]Worktree, error) {
	list := []Worktree{}
	for _, name := range s.names() {
		t, err := s.read(name)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errOtherStore) {
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, t.Worktree)
	}
	slices.SortFunc(list, func(a, b Worktree) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return list, nil
}
