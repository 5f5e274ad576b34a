package worktree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
	"github.com/sentinel-runtime/sentinel/host/internal/gitlfs"
	"github.com/sentinel-runtime/sentinel/host/internal/gitsource"
	"github.com/sentinel-runtime/sentinel/internal/regularfile"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// An Add asks for a worktree.
type Add struct {
	Ticket   string
	Token    uint64 // of the claim; 0 is the present one
	Repo     string // default that of the ticket
	Bound    bool   // Repo and Branch are refused if they are not those of the ticket, or for it; so is a repository that leads to another one
	Base     string // branch; default that of the ticket, else the current one of the repository
	Branch   string // default that of the ticket, else sentinel/ID
	Continue bool   // begin with the branch of an earlier claim, if there is one
}

// Added is a worktree that Add made or found.
type Added struct {
	Worktree
	Existed    bool     `json:"existed" jsonschema:"the claim had it"`
	Submodules []string `json:"submodules,omitempty" jsonschema:"folders that are empty, since submodules are not fetched"`
}

// Add makes the worktree of a claim, or finds it. It begins with the current base; the
// branch of an earlier claim is kept under refs/sentinel/attempts. Worktrees whose claims
// have ended are removed first.
func (s *Service) Add(ctx context.Context, in Add) (out Added, err error) {
	ticket, err := s.ticket(ctx, in.Ticket, in.Token)
	if err != nil {
		return out, err
	}
	if err := s.Sweep(ctx); err != nil {
		return out, err
	}
	t := &tree{s: s, name: s.nameOf(in.Ticket), bound: in.Bound}
	l := s.lock(t.name)
	l.Lock()
	defer l.Unlock()
	switch old, err := s.read(t.name); {
	case err == nil && old.Ticket != in.Ticket:
		return out, conflict("the folder of the worktree of ticket %s is that of ticket %s on this file system", in.Ticket, old.Ticket)
	case err == nil && old.Token == ticket.Token && old.ReadOnly:
		return out, old.readOnly()
	case err == nil && old.Token == ticket.Token:
		err := old.step(ctx, func() error {
			out = Added{Worktree: old.Worktree, Existed: true, Submodules: old.submodules(ctx)}
			return nil
		})
		return out, err
	case err == nil:
		if _, err := old.remove(ctx, unlessRetried); err != nil { // Sweep could not
			return out, err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return out, err
	}
	if err := in.check(ticket.RepoURL, ticket.Branch); err != nil {
		return out, err
	}
	t.Ticket, t.Store, t.Token = in.Ticket, s.opt.Store, ticket.Token
	t.RepoURL, t.Base, t.Branch = cmp.Or(in.Repo, ticket.RepoURL), cmp.Or(in.Base, ticket.Base), cmp.Or(in.Branch, ticket.Branch, BranchOf(t.Ticket))
	own := in.Branch == "" && ticket.Branch == ""
	if err := gitsource.CheckNewBranch("branch", t.Branch); err != nil {
		return out, err
	}
	if err := t.create(ctx, "add", func() error {
		if _, err := t.remote(ctx, "origin"); err != nil {
			return err // Push would refuse the finished work
		}
		check := t.hidesNothing
		if own {
			check = t.avoidOthers
		}
		if err := check(ctx); err != nil {
			return err
		}
		return t.clone(ctx, in.Continue)
	}); err != nil {
		return out, err
	}
	return Added{Worktree: t.Worktree, Submodules: t.submodules(ctx)}, nil
}

// check returns an error if the worktree is to be of another repository or branch than the ticket
// has, and has to be of those.
func (in *Add) check(repo, branch string) error {
	refuse := func(field, have, want string) error {
		return &abi.Error{Code: abi.Denied, Permanent: true, Field: field, Message: fmt.Sprintf("worktree of ticket %s: %s is %s, and %s was given", in.Ticket, field, want, have), Hint: "leave " + field + " out"}
	}
	switch {
	case !in.Bound:
		return nil
	case in.Repo != "" && repo != "" && in.Repo != repo:
		return refuse("repo", in.Repo, repo)
	case in.Branch != "" && branch != "" && in.Branch != branch:
		return refuse("branch", in.Branch, branch)
	case in.Branch != "" && in.Branch != branch && !AgentMayName(in.Branch, in.Ticket):
		return refuse("branch", in.Branch, BranchOf(in.Ticket))
	}
	return nil
}

// branchFolder is the first part of the branches of tickets.
const branchFolder = "sentinel"

// MayBeOfTicket reports whether a branch has a name that the branch of a ticket gets by itself. File systems ignore case.
func MayBeOfTicket(branch string) bool {
	return strings.HasPrefix(strings.ToLower(branch)+"/", branchFolder+"/")
}

// AgentMayName reports whether an agent may name a branch for a ticket: that of the ticket, or any that an agent may name.
func AgentMayName(branch, ticket string) bool {
	return branch == BranchOf(ticket) || gitsource.AgentMayName(branch)
}

// create makes a worktree whose ticket, claim and branch are set: fill makes its files. When
// it fails, nothing is left.
func (t *tree) create(ctx context.Context, operation string, fill func() error) (err error) {
	s := t.s
	if err := s.reserve(ctx, t.name); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = s.removed.Remove(s.dir(t.name)) // the next call does it
		}
	}()
	t.CreatedAt, t.Path = time.Now().UTC().Truncate(time.Millisecond), filepath.Join(s.dir(t.name), "tree")
	if err := t.locate(ctx); err != nil {
		return err
	}
	if err := fill(); err != nil {
		return err
	}
	if err := s.fits(t.name); err != nil {
		return err
	}
	raw, err := regularfile.Read(filepath.Join(t.gitDir(), "config"), 1<<20)
	if err != nil {
		return err
	}
	t.Config = string(raw)
	s.opt.At(operation + ": made")
	if err := t.save(); err != nil {
		return err
	}
	s.opt.At(operation + ": saved")
	return nil
}

// reserve makes the folder of a worktree, if there may be one more. What a crash left of
// an Add that did not return is removed, and where there is no room, each worktree whose claim
// has ended, whatever it has in the way of its commit.
func (s *Service) reserve(ctx context.Context, name string) error {
	if err := s.removed.Remove(s.dir(name)); err != nil {
		return err
	}
	s.reserving.Lock()
	defer s.reserving.Unlock()
	if len(s.names()) >= s.opt.Most {
		if err := s.sweepAll(ctx, always); err != nil {
			return err
		}
	}
	if have := len(s.names()); have >= s.opt.Most {
		return &abi.Error{Code: abi.Limit, Message: fmt.Sprintf("%d worktrees exist, at most %d may", have, s.opt.Most),
			Hint: "finish or release one of the tickets " + strings.Join(s.tickets(name), ", ") + ", or raise worktrees.most"}
	}
	return os.MkdirAll(s.dir(name), 0o700)
}

// locate finds the repository and its base.
func (t *tree) locate(ctx context.Context) error {
	if err := gitsource.CheckBranch("branch", t.Branch); err != nil {
		return err
	}
	if t.Base != "" {
		if err := gitsource.CheckBranch("base", t.Base); err != nil {
			return err
		}
	}
	repo, err := gitsource.Parse("repo", t.RepoURL)
	if err != nil {
		return err
	}
	if repo.Local == "" {
		if t.Base == "" {
			if t.Base, err = t.s.defaultBranch(ctx, repo); err != nil {
				return err
			}
		}
		if t.Source, err = t.s.mirrors.Fetch(ctx, repo.URL, "base", t.Base); err != nil {
			return err
		}
	} else if err := t.open(ctx, repo.Local); err != nil {
		return err
	}
	if t.Base == t.Branch {
		return &abi.Error{Code: abi.BadFields, Permanent: true, Field: "branch", Message: fmt.Sprintf("branch %s is the base: the work needs a branch of its own", t.Branch)}
	}
	if t.BaseCommit, err = t.source(ctx, "rev-parse", "--verify", "--quiet", branchRef(t.Base)+"^{commit}"); err != nil {
		return err
	}
	if t.BaseCommit == "" {
		any, err := t.source(ctx, "for-each-ref", "--count=1", "--format=%(refname)", "refs/heads")
		if err == nil && any == "" {
			return &abi.Error{Code: abi.NotFound, Permanent: true, Field: "repo", Message: fmt.Sprintf("repository %s has no commits", t.RepoURL), Hint: "make a first commit, for example of a README"}
		}
		missing := &abi.Error{Code: abi.NotFound, Permanent: true, Field: "base", Message: fmt.Sprintf("branch %s is not in %s", t.Base, t.RepoURL)}
		if ref, again := t.source(ctx, "rev-parse", "--verify", "--quiet", branchRef(t.Base)); again == nil && ref != "" {
			missing.Message, missing.Hint = fmt.Sprintf("the commit of branch %s cannot be read in %s: the repository is damaged", t.Base, t.RepoURL), "git fsck tells more"
		}
		return errors.Join(err, missing)
	}
	return nil
}

// open finds the git directory of a folder, and its current branch.
func (t *tree) open(ctx context.Context, folder string) error {
	if _, err := os.Stat(folder); err != nil {
		return &abi.Error{Code: abi.NotFound, Permanent: true, Field: "repo", Message: fmt.Sprintf("repository %s: %v", folder, errors.Unwrap(err))}
	}
	at := []string{}
	a, err := t.s.git.Exec(ctx, folder, "", "", "rev-parse", "--path-format=absolute", "--git-common-dir")
	if err == nil && a.Code != 0 && !refuses(a) { // a bare repository is only read when it is named
		at = []string{"--git-dir=" + folder}
		a, err = t.s.git.Exec(ctx, folder, "", "", append(at, "rev-parse", "--path-format=absolute", "--git-common-dir")...)
	}
	if err != nil {
		return err
	}
	if a.Code != 0 && !refuses(a) {
		return &abi.Error{Code: abi.NotFound, Permanent: true, Field: "repo", Message: fmt.Sprintf("%s is not a git repository", folder), Hint: "git init, and a first commit"}
	}
	if a.Code != 0 {
		return gitsource.Failed("rev-parse", gitsource.Repository{URL: folder, Local: folder}, "base", t.Base, a)
	}
	if t.bound {
		top := folder
		if a, err := t.s.git.Exec(ctx, folder, "", "", append(at, "rev-parse", "--show-toplevel")...); err != nil {
			return err
		} else if a.Code == 0 {
			top = filepath.FromSlash(strings.TrimRight(a.Out, "\r\n"))
		}
		if real, err := filepath.EvalSymlinks(top); err != nil {
			return err
		} else if err := t.s.opt.Check(real); err != nil {
			return err
		}
		own, err := t.s.mirrors.Open(ctx, top)
		if err != nil {
			return err
		}
		at = []string{"--git-dir=" + own}
		if a, err = t.s.git.Exec(ctx, folder, "", "", append(at, "rev-parse", "--path-format=absolute", "--git-common-dir")...); err != nil {
			return err
		}
		if a.Code != 0 {
			return gitsource.Failed("rev-parse", gitsource.Repository{URL: folder, Local: folder}, "base", t.Base, a)
		}
	}
	t.Source = filepath.FromSlash(strings.TrimRight(a.Out, "\r\n"))
	if t.Base != "" {
		return nil
	}
	a, err = t.s.git.Exec(ctx, folder, "", "", append(at, "symbolic-ref", "--quiet", "--short", "HEAD")...)
	if err != nil {
		return err
	}
	if t.Base = strings.TrimSpace(a.Out); a.Code == 0 {
		return gitsource.CheckBranch("base", t.Base)
	}
	return &abi.Error{Code: abi.BadFields, Permanent: true, Field: "base", Message: fmt.Sprintf("repository %s is on no branch: name the base", folder)}
}

// refuses reports whether git has found a repository in a folder and does not read it.
func refuses(a gitexec.Answer) bool {
	return !strings.Contains(a.Err, "not a git repository") && !strings.Contains(a.Err, "cannot use bare repository")
}

// defaultBranch asks a repository on another machine for its default branch.
func (s *Service) defaultBranch(ctx context.Context, repo gitsource.Repository) (string, error) {
	if err := os.MkdirAll(s.opt.Dir, 0o700); err != nil {
		return "", err
	}
	git := s.git
	var err error
	if git.Env, err = s.mirrors.Credential(repo.URL); err != nil {
		return "", err
	}
	git.Env = append(git.Env, gitexec.NoRepository)
	a, err := git.Exec(ctx, s.opt.Dir, s.mirrors.SSH(), "", "ls-remote", "--symref", "--", repo.URL, "HEAD")
	if err != nil {
		return "", err
	}
	if a.Code != 0 {
		return "", gitexec.Fatal("ls-remote", a)
	}
	line, _, _ := strings.Cut(a.Out, "\t")
	name := strings.TrimPrefix(line, "ref: refs/heads/")
	if name == line || !gitsource.ValidBranch(name) {
		return "", &abi.Error{Code: abi.BadFields, Permanent: true, Field: "base", Message: fmt.Sprintf("repository %s has no default branch, or no commits: name the base", repo.URL)}
	}
	return name, nil
}

// avoidOthers gives the branch another name if the one of the ticket is a branch of the
// ticket with the same id of another store. That one stays as it is, with its commits.
func (t *tree) avoidOthers(ctx context.Context) error {
	if t.Store == "" {
		return nil
	}
	other := t.Branch + "-" + t.Store
	refs, err := t.source(ctx, "for-each-ref", "--format=%(refname)", branchRef(t.Branch), branchRef(other), "refs/sentinel/branches/"+idName(t.Ticket)+"-*")
	if err != nil {
		return err
	}
	have, others := map[string]bool{}, 0
	for ref := range strings.FieldsSeq(refs) {
		have[ref] = true
		if strings.HasPrefix(ref, "refs/sentinel/branches/") && ref != t.ref("branches") {
			others++
		}
	}
	if have[branchRef(other)] || have[branchRef(t.Branch)] && !have[t.ref("branches")] && others > 0 {
		t.s.opt.Logger.Warn("the branch of a ticket gets another name, since one of another store has the name", "ticket", t.Ticket, "branch", other, "kept", t.Branch)
		t.Branch = other
	}
	return nil
}

// hidesNothing is [gitsource.HidesNothing] for the branch of the worktree.
func (t *tree) hidesNothing(ctx context.Context) error {
	return gitsource.HidesNothing(ctx, "branch", t.Branch, t.source)
}

// clone makes the clone and its branch.
func (t *tree) clone(ctx context.Context, keep bool) error {
	start := t.BaseCommit
	tip, err := t.source(ctx, "rev-parse", "--verify", "--quiet", branchRef(t.Branch)+"^{commit}")
	if err != nil {
		return err
	}
	ours, err := t.source(ctx, "rev-parse", "--verify", "--quiet", t.ref("branches"))
	switch {
	case err != nil:
		return err
	case tip != "" && ours == "":
		return &abi.Error{Code: abi.Conflict, Permanent: true, Field: "branch", Message: fmt.Sprintf("branch %s exists in %s, and is not of ticket %s", t.Branch, t.RepoURL, t.Ticket), Hint: "name another branch"}
	case tip != "" && keep:
		start = tip
	}
	if err := t.borrow(ctx); err != nil {
		return err
	}
	t.s.opt.At("add: cloned")
	if err := t.checkOut(ctx, "--no-track", "-B", t.Branch, start); err != nil {
		return err
	}
	if start != t.BaseCommit {
		if t.BaseCommit, err = t.must(ctx, "merge-base", "merge-base", t.BaseCommit, start); err != nil {
			return err
		}
	}
	t.Commit, t.From = start, start
	t.s.opt.At("add: checked out")
	var updates []update
	if tip != "" && tip != start { // what an earlier claim did stays
		kept, err := t.source(ctx, "for-each-ref", "--count=1", "--points-at="+tip, "--format=%(refname)", t.ref("attempts"))
		if err != nil {
			return err
		}
		merged, err := t.exec(ctx, "", "merge-base", "--is-ancestor", tip, start)
		if err != nil {
			return err
		}
		if kept == "" && merged.Code != 0 {
			updates = append(updates, update{fmt.Sprintf("%s/before-%d", t.ref("attempts"), t.Token), "", tip})
		}
	}
	return t.publish(ctx, append(updates, update{branchRef(t.Branch), tip, start}, update{t.ref("branches"), ours, start})...)
}

// checkOut writes the files of a commit, with the objects of Git LFS.
func (t *tree) checkOut(ctx context.Context, args ...string) error {
	a, err := t.exec(ctx, "", append(append([]string{"checkout", "--quiet", "--no-recurse-submodules"}, args...), "--")...)
	if err == nil && a.Code != 0 {
		err = gitexec.Fatal("checkout", a)
	}
	return err
}

// borrow makes a clone without files that borrows the objects of the repository.
func (t *tree) borrow(ctx context.Context) error {
	args := []string{
		"clone", "--quiet", "--shared", "--no-tags", "--no-checkout", "--single-branch", "--branch=" + t.Base, "--no-recurse-submodules",
		"--upload-pack=" + t.s.git.Service("upload-pack"), "--separate-git-dir=" + t.gitDir(),
	}
	filters, err := gitlfs.CloneFilters(ctx, t.inSource)
	if err != nil {
		return err
	}
	a, err := t.s.git.Exec(ctx, t.s.dir(t.name), "", "", append(append(args, filters...), "--", t.Source, t.Path)...)
	if err == nil && a.Code != 0 {
		err = gitsource.Failed("clone", gitsource.Repository{URL: t.RepoURL}, "base", t.Base, a)
	}
	return err
}
