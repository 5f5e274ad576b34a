package verify

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/host/confine"
	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
	"github.com/sentinel-runtime/sentinel/host/internal/gitsource"
	"github.com/sentinel-runtime/sentinel/host/internal/trash"
	"github.com/sentinel-runtime/sentinel/host/ticket"
	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Options are what a Verifier needs. Dir is required.
type Options struct {
	Plugins    Plugins        // further types of checks; default none
	Confine    confine.Runner // executes commands; required for checks that have some
	Dir        string         // absolute folder of repositories and checkouts; made when needed
	Git        string         // program; default the git on PATH
	SSHKey     string         // file of the private key for ssh; default the user's own
	KnownHosts string         // file of known keys of hosts; default the user's own
	// Credential returns what https repositories of a server get; default git's own credentials.
	Credential func() (gitsource.Credential, error)
	// Published returns the folder of a copy of a repository on another machine that has a
	// branch which is not pushed yet, "" if there is none; default there is none.
	Published func(repoURL, branch string) string
	URL       string   // where http_request goes without a service; default [DefaultURL] for criteria of persons, nowhere for those of agents
	Env       []string // variables of the host that checks get and {{NAME}} reads; default none
	Read      []string // folders outside of the checkout that commands may read, and repositories borrow objects from
	Hide      []string // files and folders of the host, which do not exist for commands
	// Secret reports whether a file of the checkout, by its path with links resolved and its content,
	// holds secrets: an agent's criteria do not tell what is in it. Default no file does.
	Secret   func(name string, data []byte) bool
	MaxSize  int64         // bytes of a copy of a repository, and of the files of a commit; default no limit. Errors name worktrees.size
	Offline  bool          // commands have a network of their own
	Require  []string      // walls without which no command is executed; see confine.Walls
	Timeout  time.Duration // of a check that names none; default 5 minutes
	Parallel int           // verifications at one time, and one more for a person; default 4
	Getenv   func(string) (string, bool)
	Redact   func(string) string // hides secrets in what is shown; default nothing is hidden
	Now      func() time.Time
	Logger   *slog.Logger
}

// DefaultURL is where requests of a person's criteria go that have no service. An agent's do
// not: a program that happens to listen there was chosen by no one.
const DefaultURL = "http://localhost:3000"

// maxMessage bounds the message of a check of a plugin, in bytes.
const maxMessage = 2 << 10

// maxOutput bounds what a result has of the output of one check, in bytes.
const maxOutput = 16 << 10

// A Verifier executes verifications. It may be used by several goroutines.
type Verifier struct {
	opt   Options
	from  checkouts
	slots chan struct{}
	own   chan struct{} // the place that only persons take

	mu     sync.Mutex
	shares map[string]*share // by caller; those in use
}

// A share is the half of the places that one caller may take.
type share struct {
	places chan struct{}
	users  int // verifications that have or wait for a place; guarded by Verifier.mu
}

// New returns a Verifier.
func New(opt Options) *Verifier {
	if opt.Git == "" {
		opt.Git = gitexec.LookPath()
	}
	if opt.Timeout == 0 {
		opt.Timeout = 5 * time.Minute
	}
	if opt.Parallel == 0 {
		opt.Parallel = 4
	}
	if opt.Getenv == nil {
		opt.Getenv = os.LookupEnv
	}
	if opt.Redact == nil {
		opt.Redact = func(text string) string { return text }
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	git := gitexec.Runner{Program: opt.Git}
	removed := &trash.Bin{Dir: filepath.Join(opt.Dir, "removed"), Logger: opt.Logger}
	return &Verifier{opt: opt, slots: make(chan struct{}, opt.Parallel), own: make(chan struct{}, 1), shares: map[string]*share{}, from: checkouts{
		published: opt.Published, git: git, dir: opt.Dir, removed: removed, maxSize: opt.MaxSize, mirrors: gitsource.Mirrors{
			Git: git, Dir: filepath.Join(opt.Dir, "repositories"), Removed: removed, Key: opt.SSHKey, Hosts: opt.KnownHosts, MaxSize: opt.MaxSize, Read: opt.Read, Auth: opt.Credential,
		},
	}}
}

// Sweep removes what an earlier process left behind. No verification may be in progress.
func (v *Verifier) Sweep() error { return v.from.sweep() }

// Tip returns the newest commit of a branch where [Verifier.Run] clones it from, "" if the branch
// does not exist. branch "" is the default branch of the repository.
func (v *Verifier) Tip(ctx context.Context, repoURL, branch string) (string, error) {
	repo, err := gitsource.Parse("repo_url", repoURL)
	if err != nil {
		return "", err
	}
	return v.from.tip(ctx, repo, branch)
}

// Close waits until the files of verifications are deleted. Other calls must have returned.
func (v *Verifier) Close() {
	v.from.removed.Close()
	for _, dir := range []string{v.from.checkoutDir(), v.opt.Dir} {
		_ = os.Remove(dir) // if it is empty
	}
}

// A Job is one verification.
type Job struct {
	Criteria   *ticket.Criteria
	RepoURL    string
	Branch     string // "" is the default branch of the repository
	ServiceURL string // where http_request goes without a service; default that of the verifier
	Approved   bool   // what needs the approval of a person may be executed
	ByPerson   bool   // a person wrote the criteria
	ForPerson  bool   // a person waits for it
	Caller     string // the agent or run that asks, which gets half of the places at most; "" for others
	// OnCheck is called after each check. Default none.
	OnCheck func(CheckResult)
}

// Run executes a verification. Faults of repositories and checks are in the result; the
// error is that of ctx alone.
func (v *Verifier) Run(ctx context.Context, job Job) (Result, error) {
	if job.Caller != "" {
		places, leave := v.enterShare(job.Caller)
		defer leave()
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
		case <-ctx.Done():
			return Result{}, context.Cause(ctx)
		}
	}
	var own chan<- struct{} // nil blocks
	if job.ForPerson {
		own = v.own
	}
	select {
	case v.slots <- struct{}{}:
		defer func() { <-v.slots }()
	case own <- struct{}{}:
		defer func() { <-v.own }()
	case <-ctx.Done():
		return Result{}, context.Cause(ctx)
	}
	started := v.opt.Now()
	r := Result{RepoURL: job.RepoURL, BranchName: job.Branch, Checks: []CheckResult{}, StartedAt: started.UTC().Truncate(time.Millisecond)}
	if job.Criteria == nil {
		job.Criteria = new(ticket.Criteria)
	}
	err := v.run(ctx, job, &r)
	if ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	if err != nil {
		r.Blocked = blocked(err)
		for _, c := range job.Criteria.Checks {
			r.Checks = append(r.Checks, CheckResult{ID: c.ID, Type: c.Type, Status: Skipped, Reason: r.Blocked.Reason, Message: r.Blocked.Message})
		}
	}
	r.conclude()
	v.hide(&r)
	r.DurationMs = v.opt.Now().Sub(started).Milliseconds()
	return r, nil
}

// enterShare returns the places of a caller. leave is called when the verification has ended.
func (v *Verifier) enterShare(caller string) (places chan struct{}, leave func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	own := v.shares[caller]
	if own == nil {
		own = &share{places: make(chan struct{}, max(v.opt.Parallel/2, 1))}
		v.shares[caller] = own
	}
	own.users++
	return own.places, func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		if own.users--; own.users == 0 {
			delete(v.shares, caller)
		}
	}
}

// blocked says why a verification could not begin.
func blocked(err error) *Blocked {
	b := &Blocked{Reason: Infrastructure, Message: err.Error()}
	known := abi.As(err)
	if known == nil {
		return b
	}
	b.Message = known.Message
	if known.Hint != "" {
		b.Message += " (" + known.Hint + ")"
	}
	switch known.Code {
	case abi.NotFound:
		b.Reason = NotFound
	case abi.Denied, abi.BadFields, abi.Conflict, abi.Limit:
		b.Reason = Refused
	}
	return b
}

func (v *Verifier) run(ctx context.Context, job Job, r *Result) (err error) {
	if len(job.Criteria.Checks) == 0 {
		return nil
	}
	repo, err := gitsource.Parse("repo_url", job.RepoURL)
	if err != nil {
		return err
	}
	if job.Branch != "" {
		if err := gitsource.CheckBranch("branch_name", job.Branch); err != nil {
			return err
		}
	}
	c, err := v.from.make(ctx, repo, job.Branch)
	if err != nil {
		return err
	}
	defer func() {
		if problem := v.from.removed.Remove(c.dir); problem != nil {
			v.opt.Logger.Warn("a checkout cannot be removed", "path", c.dir, "error", problem)
		}
	}()
	root, err := os.OpenRoot(c.tree)
	if err != nil {
		return err
	}
	defer root.Close()
	r.Commit = c.commit
	s := &session{v: v, job: job, checkout: c, root: root, env: v.environment(), read: append([]string{c.objects}, v.opt.Read...)}
	defer s.close()
	for _, own := range job.Criteria.Checks {
		began := v.opt.Now()
		result := s.check(ctx, own)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		result.ID, result.DurationMs = own.ID, v.opt.Now().Sub(began).Milliseconds()
		r.Checks = append(r.Checks, result)
		if job.OnCheck != nil {
			job.OnCheck(result)
		}
	}
	r.Missing = s.missing
	return nil
}

// environment returns the variables that checks get.
func (v *Verifier) environment() environment {
	env := environment{}
	for _, name := range v.opt.Env {
		if value, ok := v.opt.Getenv(name); ok {
			env[name] = value
		}
	}
	return env
}

// hide takes secrets out of what is stored and shown.
func (v *Verifier) hide(r *Result) {
	for i := range r.Checks {
		r.Checks[i].Message, r.Checks[i].Output = v.opt.Redact(r.Checks[i].Message), v.opt.Redact(r.Checks[i].Output)
	}
	for i := range r.Feedback {
		r.Feedback[i] = v.opt.Redact(r.Feedback[i])
	}
	if r.Blocked != nil {
		r.Blocked.Message = v.opt.Redact(r.Blocked.Message)
	}
}

// A session is a verification that is being executed.
type session struct {
	v        *Verifier
	job      Job
	checkout *checkout
	root     *os.Root
	env      environment
	read     []string            // what commands may read outside of the checkout
	services map[string]*service // by their JSON
	missing  []string
}

// gaps notes what the machine cannot keep the commands of this verification from.
func (s *session) gaps(list []confine.Gap) {
	s.missing = nil
	for _, g := range list {
		s.missing = append(s.missing, g.String())
	}
}

// check executes one check.
func (s *session) check(ctx context.Context, own ticket.Check) CheckResult {
	read, err := parse(own)
	if err != nil {
		return CheckResult{Type: read.kind, Status: Failed, Message: err.Error()}
	}
	r := s.execute(ctx, read)
	r.Type = read.kind
	return r
}

func (s *session) execute(ctx context.Context, c check) CheckResult {
	what := "command"
	if do, ok := c.do.(*httpCheck); ok && do.Service == nil {
		what = "request"
		if s.base() == "" {
			return skip(Refused, "requests of an agent's criteria have no default URL: give the check a service, or have a person set verify.url")
		}
	}
	if lines := c.do.commands(); len(lines) > 0 && !s.job.Approved {
		return skip(NeedsApproval, "a person has to approve the %s: %s", what, quote(lines[0]))
	}
	timeout := c.timeout
	if timeout == 0 {
		timeout = s.v.opt.Timeout
	}
	switch do := c.do.(type) {
	case *fileCheck:
		if len(do.Contains) > 0 && s.secret(do.Path) {
			return refuseSecret(do.Path)
		}
		status, message := do.run(s.root, s.visible)
		return CheckResult{Status: status, Message: message}
	case *patternCheck:
		if s.secret(do.File) {
			return refuseSecret(do.File)
		}
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		status, message := do.run(ctx, s.root, s.visible)
		return CheckResult{Status: status, Message: message}
	case *testCheck:
		return s.test(ctx, do, timeout)
	case *httpCheck:
		return s.http(ctx, do, min(timeout, requestTimeout))
	case unknownCheck:
		return s.plugin(ctx, c, timeout)
	case manualCheck:
		return skip(NeedsPerson, "a person has to check: %s", quote(c.Description))
	}
	return CheckResult{Status: Failed, Message: fmt.Sprintf("unknown type of check %q", quote(c.kind))}
}

// plugin executes a check of a plugin. One whose plugin is gone, or was never there, fails.
func (s *session) plugin(ctx context.Context, c check, timeout time.Duration) CheckResult {
	unknown := CheckResult{Status: Failed, Message: fmt.Sprintf("unknown type of check %q", quote(c.kind))}
	if s.v.opt.Plugins == nil {
		return unknown
	}
	if problem, ok := s.v.opt.Plugins.CheckType(c.kind, c.Verify); !ok {
		return unknown
	} else if problem != nil {
		return CheckResult{Status: Failed, Message: problem.Error()}
	}
	out, err := s.v.opt.Plugins.ExecuteCheck(ctx, c.kind, c.Verify, timeout, s.checkout.tree)
	switch abi.CodeOf(err) {
	case "":
	case abi.Denied:
		return skip(Refused, "%v", err)
	case abi.Unavailable, abi.Cancelled, abi.Interrupted:
		return skip(Infrastructure, "%v", err)
	default:
		return CheckResult{Status: Failed, Message: err.Error()}
	}
	r := CheckResult{Status: Failed, Message: textcut.Mark(out.Message, maxMessage), Output: textcut.Mark(out.Output, maxOutput)}
	if out.Passed {
		r.Status = Passed
	}
	return r
}

// command returns a shell line as it is executed here.
func (s *session) command(line, network string) confine.Command {
	return confine.Command{
		Shell: line, Dir: s.checkout.tree, Root: s.checkout.tree, Scratch: s.checkout.scratch, Env: s.env, Read: s.read, MaxOutput: maxOutput,
		Hide: s.v.opt.Hide, Offline: s.v.opt.Offline || network == networkClosed, Require: s.v.opt.Require,
	}
}

func (s *session) test(ctx context.Context, c *testCheck, timeout time.Duration) CheckResult {
	line, missing := s.shellLine(c.Command)
	if missing != "" {
		return skip(Refused, "{{%s}}: no such variable for checks; list it in the setting verify.env, and set it", missing)
	}
	command := s.command(line, c.Network)
	command.Timeout = timeout
	done, err := s.v.opt.Confine.Run(ctx, command)
	if err != nil {
		return skip(Infrastructure, "the command could not be executed: %v", err)
	}
	s.gaps(done.Gaps)
	r := CheckResult{Status: Failed, Output: strings.ToValidUTF8(string(done.Output), "\uFFFD")}
	switch {
	case done.Limit != "":
		r.Message = "Test failed: ended because " + done.Limit
	case done.TimedOut:
		r.Message = fmt.Sprintf("Test failed: no end after %s", timeout)
	case done.Signal != "":
		r.Message = fmt.Sprintf("Test failed: ended by signal %s", done.Signal)
	case done.ExitCode != c.Code:
		r.Message = fmt.Sprintf("Test failed: expected exit code %d, got %d", c.Code, done.ExitCode)
		r.Message += s.notFound(done.ExitCode, r.Output)
	case c.Code != 0:
		r.Status, r.Message = Passed, fmt.Sprintf("Exited with expected code %d", c.Code)
	default:
		r.Status, r.Message = Passed, "Test passed"
	}
	return r
}

// notFound says, in parentheses, what a command has not found that ended with an unexpected exit code. Exit
// code 127 means that the shell found no program, and says so in the output, or that the program it found is
// the shim of a version manager, which finds no version of the real one.
func (s *session) notFound(exitCode int, output string) string {
	switch name, folder := s.unreadable(output); {
	case folder != "":
		return fmt.Sprintf(" (%s is below %s, which commands of checks do not read: add this folder to the setting verify.read)", name, folder)
	case exitCode != 127:
		return ""
	case strings.Contains(output, "not found"):
		return " (a command was not found)"
	}
	return " (a command found no program to execute: a check does not read the folder of a version manager in the home, such as ~/.pyenv, unless verify.read names it; verify.env passes its variables)"
}

// missingName matches the name of a command in what shells print about one that they do not find. A
// path is none: the message would say of any file of the user whether it is there.
var missingName = lazyregexp.New(`(?m)([A-Za-z0-9_.+-]+): (?:command )?not found`)

// unreadable returns the first program on PATH that a command has not found since it does not read
// the folder below the home that has it, and this folder.
func (s *session) unreadable(output string) (name, folder string) {
	for _, found := range missingName.FindAllStringSubmatch(output, maxNames) {
		if path, err := exec.LookPath(found[1]); err == nil {
			if folder := confine.Unreadable(path, s.read); folder != "" {
				return found[1], folder
			}
		}
	}
	return "", ""
}

// maxNames limits the names in an output that are looked up.
const maxNames = 20

// shellLine replaces {{NAME}} by "$NAME": the command gets the variable, and its value
// cannot be read as a part of the line.
func (s *session) shellLine(line string) (out, missing string) {
	out = placeholder.ReplaceAllStringFunc(line, func(found string) string {
		name := placeholder.FindStringSubmatch(found)[1]
		if _, ok := s.env[name]; !ok && missing == "" {
			missing = name
		}
		return "${" + name + "}"
	})
	return out, missing
}

// base returns where requests go that have no service, "" for nowhere.
func (s *session) base() string {
	base := cmp.Or(s.job.ServiceURL, s.v.opt.URL)
	if base == "" && s.job.ByPerson {
		return DefaultURL
	}
	return base
}

func (s *session) http(ctx context.Context, c *httpCheck, timeout time.Duration) CheckResult {
	base := s.base()
	var own *service
	if c.Service != nil {
		key, err := json.Marshal(c.Service)
		if err != nil {
			return skip(Refused, "service: %v", err)
		}
		if own = s.services[string(key)]; own == nil {
			own = s.start(ctx, c.Service)
			if s.services == nil {
				s.services = map[string]*service{}
			}
			s.services[string(key)] = own
		}
		if own.failed != nil {
			return *own.failed
		}
		base = own.url
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var dial dialer
	if own != nil {
		dial = own.dial()
	}
	r := c.request(ctx, base, s.env, dial)
	if own != nil {
		if problem := own.answeredByAnother(); problem != nil {
			r = *problem
		}
	}
	if own != nil && r.Status == Failed {
		r.Output = strings.TrimSpace(r.Output + "\n" + own.output())
	}
	return r
}

// close ends the services.
func (s *session) close() {
	for _, own := range s.services {
		own.stop()
	}
}

// failure is the error of a ticket's verification that could not be recorded.
func failure(id string, err error) error {
	if err == nil || abi.As(err) != nil || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("verify ticket %s: %w", id, err)
}
