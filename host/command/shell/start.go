package shell

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/principal"
	"github.com/sentinel-runtime/sentinel/internal/pathtext"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// job is one program to start.
type job struct {
	call    *command.Call
	argv    []string
	dir     string // below the workspace
	env     map[string]command.EnvValue
	stdin   string
	timeout time.Duration // 0 is none
	rules   []Rule
	variant string // distinguishes several programs of one call

	background bool // no call waits for its end
	loop       bool // it ends with the innermost loop around the step
}

// start starts the program of j. A call that is made again after a crash, with the key and the
// attempt of before, starts under the same id: what still lives is ended first, the lines so far
// stay, and a line of the host marks the gap. A later attempt has an execution of its own, with its
// own output, and ends what the one before has left.
func (m *Manager) start(ctx context.Context, j job) (_ *execution, _ *child, err error) {
	defer func() { err = notStarted(err) }()
	set, rules, err := compileRules(j.rules, m.knownClassifier)
	if err != nil {
		return nil, nil, err
	}
	if err := m.endEarlier(ctx, j); err != nil {
		return nil, nil, err
	}
	e, err := m.obtain(ctx, executionID(j.call.Key, attemptOf(j.variant, j.call.Attempt), randomID), j.call)
	if err != nil {
		return nil, nil, err
	}
	defer m.unpin(e)
	e.starting.Lock()
	defer e.starting.Unlock()
	e.stop(reasonKilled)
	if err := e.wait(ctx); err != nil {
		return nil, nil, err
	}
	if err := m.reserve(ctx, e, j); err != nil {
		m.discard(e)
		return nil, nil, err
	}
	e.tell(j.call)
	c, err := e.launch(ctx, j, set, rules)
	if err != nil {
		m.release(e)
		m.group.Done()
		m.discard(e)
		return nil, nil, err
	}
	if valid := principal.Validity(ctx); valid != nil && j.background && j.call.Run == "" {
		go c.endWithToken(valid)
	}
	return e, c, nil
}

// attemptOf distinguishes the attempts of a call, which have one key.
func attemptOf(variant string, attempt int) string {
	if attempt <= 1 {
		return variant
	}
	return fmt.Sprintf("%s\x00attempt %d", variant, attempt)
}

// endEarlier ends what the attempt before has left running.
func (m *Manager) endEarlier(ctx context.Context, j job) error {
	if j.call.Key == "" || j.call.Attempt <= 1 {
		return nil
	}
	e := m.known(executionID(j.call.Key, attemptOf(j.variant, j.call.Attempt-1), nil))
	if e == nil {
		return nil
	}
	e.stop(reasonKilled)
	return e.wait(ctx)
}

// obtain returns the execution with the id, an empty one if there is none,
// pinned: the caller unpins it.
func (m *Manager) obtain(ctx context.Context, id string, call *command.Call) (*execution, error) {
	m.forgetting.RLock()
	defer m.forgetting.RUnlock()
	for {
		e, err := m.lookUp(ctx, id)
		if abi.CodeOf(err) == abi.NotFound {
			e, err = m.attach(Record{ID: id, Run: call.Run, Owner: ownerOf(call), Share: call.Share(), Path: call.Path, State: Ended})
		}
		if err != nil {
			return nil, err
		}
		if !e.belongsTo(call) {
			return nil, abi.New(abi.Conflict, fmt.Sprintf("execute: execution %q belongs to another run or caller", id))
		}
		m.mu.Lock()
		current := m.all[id] == e // not discarded meanwhile
		if current {
			e.pins++
		}
		m.mu.Unlock()
		if current {
			return e, nil
		}
	}
}

// discard takes an execution that never started out of memory.
func (m *Manager) discard(e *execution) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.record().Starts == 0 && m.all[e.id] == e {
		delete(m.all, e.id)
	}
}

// unpin lets an execution be forgotten again.
func (m *Manager) unpin(e *execution) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e.pins--
}

// launch records the start, then starts: a crash in between leaves a record
// whose cookie finds the process. The caller holds e.starting.
func (e *execution) launch(ctx context.Context, j job, set ruleset, rules []Rule) (*child, error) {
	cookie := randomID() + randomID()
	cmd, err := e.m.prepare(j, cookie, e.id)
	if err != nil {
		return nil, err
	}
	var ended func(context.Context) error
	if e.m.opt.Confine != nil {
		confined, after, err := e.m.opt.Confine(ctx, j.call, cmd)
		if err != nil {
			return nil, err
		}
		if confined != nil {
			confined.Stdin = cmd.Stdin
			cmd, ended = confined, after
		}
	}
	c, err := e.begin(ctx, j, cmd, cookie, ended, set, rules)
	if err != nil && ended != nil {
		err = errors.Join(err, ended(e.m.closing))
	}
	return c, err
}

// begin is launch for a prepared program. ended, which may be nil, is called when all its
// processes have ended.
func (e *execution) begin(ctx context.Context, j job, cmd *exec.Cmd, cookie string, ended func(context.Context) error, set ruleset, rules []Rule) (*child, error) {
	e.mu.Lock()
	again := e.rec.Starts > 0
	e.mu.Unlock()
	if again {
		e.note("[started again: output of the start before may be missing here]")
	}
	if err := e.enter(ctx, j, cookie, set, rules); err != nil {
		return nil, err
	}
	c, err := e.spawn(ctx, cmd, j, ended)
	if err != nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.rec.State, e.rec.EndedAt = Ended, time.Now()
		e.rec.Starts-- // nothing of it can be missing
		return nil, errors.Join(err, e.save(ctx))
	}
	return c, nil
}

// enter writes the record of a start that is about to happen.
func (e *execution) enter(ctx context.Context, j job, cookie string, set ruleset, rules []Rule) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := &e.rec
	r.Run, r.Path, r.Argv, r.Dir = j.call.Run, j.call.Path, e.m.keptWords(j.argv), e.m.opt.Redact.String(j.dir)
	r.Loop = j.loop
	r.Iteration, r.Attempt = cmp.Or(j.call.Iteration, r.Iteration), j.call.Attempt
	r.State, r.BootID, r.Cookie, r.PID, r.StartTime = Running, bootID(), cookie, 0, 0
	r.StartedAt, r.EndedAt = time.Now(), time.Time{}
	r.ExitCode, r.Signal, r.TimedOut, r.ZeroBytes = nil, "", false, 0
	r.First = e.out.next
	r.Starts++
	if rules != nil || r.Starts == 1 {
		r.Rules, e.rules = e.m.keptRules(rules), set
	}
	return e.save(ctx)
}

// keptWords returns the words of a command line without secrets.
func (m *Manager) keptWords(argv []string) []string {
	words := make([]string, len(argv))
	for i, word := range argv {
		words[i] = m.opt.Redact.String(word)
	}
	return words
}

// keptRules returns rules without secrets. A pattern that names one matches no line that is
// kept, so nothing is lost.
func (m *Manager) keptRules(rules []Rule) []Rule {
	kept := slices.Clone(rules)
	for i := range kept {
		kept[i].Pattern = m.opt.Redact.String(kept[i].Pattern)
	}
	return kept
}

// spawn starts the process and what watches over it.
func (e *execution) spawn(ctx context.Context, cmd *exec.Cmd, j job, ended func(context.Context) error) (*child, error) {
	c := &child{e: e, ended: ended, stopped: make(chan struct{}), known: make(chan struct{}), over: make(chan struct{})}
	var writers []*os.File
	closeAll := func(files []*os.File) {
		for _, f := range files {
			_ = f.Close() // our copy of a pipe; nothing was written through it
		}
	}
	for range 2 {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(writers)
			closeAll(c.readers)
			return nil, fmt.Errorf("execute: %w", err)
		}
		c.readers, writers = append(c.readers, r), append(writers, w)
	}
	cmd.Stdout, cmd.Stderr = writers[0], writers[1]
	// The lock is held during the start so that no caller sees a live execution
	// without its child.
	e.mu.Lock()
	proc, err := startProcess(cmd, starting{pool: &e.m.supervisors, file: e.m.treeFile(e.id), cookie: e.rec.Cookie, adopts: e.m.opt.Subreaper, foreign: ended != nil})
	closeAll(writers)
	if err != nil {
		e.mu.Unlock()
		closeAll(c.readers)
		return nil, err
	}
	c.proc, e.child = proc, c
	e.rec.PID, e.rec.StartTime = proc.pid, proc.start
	err = e.save(ctx)
	e.announce()
	e.mu.Unlock()
	if err != nil {
		// It runs, and the record made before finds it by its cookie.
		e.m.log.Warn("record execution", "execution", e.id, "error", err)
	}
	c.begin(j.timeout)
	e.m.mu.Lock()
	closed := e.m.closed
	e.m.mu.Unlock()
	if closed { // Close may have looked before the child was there
		c.stop(reasonClosed)
	}
	return c, nil
}

// exitRefused is the exit code of a confined command that ended with 0 and left what is refused.
const exitRefused = 126

// finish records the end of c and wakes all that wait for it.
func (e *execution) finish(c *child) {
	code, signal := c.proc.exit()
	if err := c.finishConfined(code, signal); err != nil {
		e.note(fmt.Sprintf("[%v]", err))
		if code == 0 {
			code = exitRefused
		}
	}
	e.mu.Lock()
	e.rec = c.outcome(e.rec, code, signal)
	e.telling.flush()
	e.child = nil
	result := e.rec
	if err := e.save(context.Background()); err != nil {
		e.m.log.Warn("record end of execution", "execution", e.id, "error", err)
	}
	e.announce()
	e.mu.Unlock()
	e.m.release(e)
	c.makeKnown(result)
	close(c.over)
	e.m.ended(e)
}

// prepare builds the process of a job without starting it.
func (m *Manager) prepare(j job, cookie, id string) (*exec.Cmd, error) {
	dir, err := folder(j.call.Workspace, j.dir)
	if err != nil {
		return nil, err
	}
	env, err := m.environment(j.call, j.env, cookie, id)
	if err != nil {
		return nil, err
	}
	for i, e := range env {
		if strings.HasPrefix(e, "PWD=") {
			env[i] = "PWD=" + dir
		}
	}
	argv := make([]string, len(j.argv))
	for i, a := range j.argv {
		if strings.ContainsRune(a, 0) {
			return nil, &abi.Error{Code: abi.BadFields, Permanent: true, Message: "execute: an argument has a zero byte"}
		}
		argv[i] = pathtext.Decode(a) // it may be a path, or have one
	}
	program, err := resolve(argv[0], dir, env)
	if err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{Path: program, Args: argv, Dir: dir, Env: env, WaitDelay: drainTime}
	if j.stdin != "" {
		cmd.Stdin = strings.NewReader(j.stdin)
	}
	return cmd, nil
}

// folder resolves the working folder, which must be inside the workspace.
func folder(workspace, dir string) (string, error) {
	base, err := filepath.EvalSymlinks(workspace)
	if err != nil {
		return "", fmt.Errorf("execute: workspace: %w", err)
	}
	if dir == "" {
		return base, nil
	}
	dir = pathtext.Decode(dir)
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(base, dir)
	}
	full, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", &abi.Error{Code: abi.NotFound, Field: "cwd", Permanent: true, Message: fmt.Sprintf("execute: folder %q: no such folder", dir)}
	}
	if rel, err := filepath.Rel(base, full); err != nil || !filepath.IsLocal(rel) {
		return "", &abi.Error{Code: abi.Denied, Field: "cwd", Permanent: true, Message: fmt.Sprintf("execute: folder %q: outside the workspace", dir)}
	}
	if info, err := os.Stat(full); err != nil || !info.IsDir() {
		return "", &abi.Error{Code: abi.NotFound, Field: "cwd", Permanent: true, Message: fmt.Sprintf("execute: %q is not a folder", dir)}
	}
	return full, nil
}

// notStarted marks the error of a start that failed because there were too many open files:
// nothing has run, so the engine may call again. See command.Registry.Call.
func notStarted(err error) error {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE} {
		if errors.Is(err, errno) {
			return fmt.Errorf("%w: %w", &abi.Error{Code: abi.Unavailable, Message: err.Error(), Hint: "raise the limit of open files: ulimit -n"}, errno)
		}
	}
	return err
}

// startError gives the error of a process that did not start its code.
func startError(program string, err error) error {
	e := &abi.Error{Code: abi.Internal, Message: fmt.Sprintf("execute %q: %v", program, err)}
	switch {
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return fmt.Errorf("execute %q: %w", program, err) // see notStarted
	case errors.Is(err, syscall.E2BIG):
		e.Code, e.Permanent, e.Hint = abi.Limit, true, "arguments and variables are larger than the system takes: use stdin or a file"
	case errors.Is(err, fs.ErrNotExist):
		e.Code, e.Permanent = abi.NotFound, true
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOEXEC):
		e.Code, e.Permanent = abi.Denied, true
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.ENOMEM):
		e.Code = abi.Unavailable
	}
	return e
}

// randomID is for calls without a key, which are not repeated, and for cookies.
func randomID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails, see crypto/rand
	return hex.EncodeToString(b[:])
}
