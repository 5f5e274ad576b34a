package shell

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/redact"
	"github.com/sentinel-runtime/sentinel/internal/share"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Options configure a [Manager]. The zero value works.
type Options struct {
	// Dir holds the spill files, and the records if Store is nil. It is made
	// with mode 0700. Default: a temporary folder that Close removes.
	Dir string
	// Store keeps the records: default one file each in Dir.
	Store Store
	// MaxPerRun is how many executions of one run that a call waits for may live at once,
	// and how many of those that it does not wait for; further ones wait for their start.
	// The calls of one caller without a run share a count, for an agent a quarter of it, and
	// all runs that execute for an agent share one: default 32.
	MaxPerRun int
	// MaxOutput is how much output of one execution is kept, in bytes, half
	// from its beginning and half from its end: default 32 MiB.
	MaxOutput int64
	// MaxKept is how many ended executions are kept, with up to a twentieth more: default
	// 5000.
	MaxKept int
	// MaxDisk is how many bytes of output ended executions may keep together,
	// the oldest go first, with up to a twentieth more: default 1 GiB.
	MaxDisk int64
	// Grace is the time between asking a process group to end and killing it:
	// default 2 s.
	Grace time.Duration
	// Pass names variables of the host that programs get beside the usual ones; a "*" in a
	// name matches any characters. Default none.
	Pass []string
	// Environ returns the environment of the host. Default os.Environ.
	Environ func() []string
	// Definition returns the variables that the definition of a call's run adds, secrets
	// resolved. Default: there are none.
	Definition func(call *command.Call) (map[string]string, error)
	// Secret returns the value of a secret for the program that a call starts, if it may have
	// it. Default: there are none.
	Secret func(call *command.Call, name string) (string, error)
	// Subreaper makes this process adopt the orphans of all its descendants (Linux),
	// so that what a command leaves behind is found even if the command kills its
	// supervisor. It is for programs that start no child in a session of its own
	// except through a Manager: such a child would be taken for an orphan. Default
	// false.
	Subreaper bool
	// Confine returns the program that executes cmd confined, for a call whose commands are
	// confined, and what to do when all its processes have ended; nil for other calls. It may wait,
	// until ctx ends. An error of ended fails the execution; its context ends some time after the
	// Manager was closed. Default: no command is confined.
	Confine func(ctx context.Context, call *command.Call, cmd *exec.Cmd) (confined *exec.Cmd, ended func(context.Context) error, err error)
	// Printed is called while executions of runs print, several times a second, with the end of
	// what came since the last time. It must not block. Default: not called.
	Printed func(Printed)
	// Classifiers are the output classifiers that rules may name. Default none.
	Classifiers Classifiers
	// Redact takes secrets out of the output of programs and of their command lines, before
	// they are kept. Default none.
	Redact *redact.Redactor
	// Logger receives faults that are part of no result. Default none.
	Logger *slog.Logger
}

// Printed is what an execution has printed lately.
type Printed struct {
	ExecutionID        string
	Run, Root          sentinels.RunID
	Sentinel           sentinels.ID
	Path, StepName     string
	Iteration, Attempt int
	Offset             int64  // bytes that the execution had printed before
	Text               string // as terminals show it, without secrets
}

// A Manager runs programs and remembers them. Make one with [New].
type Manager struct {
	opt   Options
	store Store
	log   *slog.Logger
	temp  bool // Dir is ours to remove

	supervisors supervisors

	// forgetting is locked while executions are forgotten, and read-locked while one is
	// looked up: between memory and store it would come back without its output. It is
	// locked before mu.
	forgetting sync.RWMutex

	mu        sync.Mutex
	all       map[string]*execution
	live      map[sentinels.RunID]int
	places    map[placesOf]*places
	unpruned  int64 // bytes of output of executions that ended since the last look at the bounds
	recovered bool
	closed    bool
	group     sync.WaitGroup // live executions, and those being started

	closing context.Context // ends when Close has waited for closeTime
	hurry   context.CancelCauseFunc
}

// New returns a Manager. Call [Manager.Recover] before anything is started, so
// that what an earlier process left behind is found.
func New(opt Options) (*Manager, error) {
	if opt.Environ == nil {
		opt.Environ = os.Environ
	}
	closing, hurry := context.WithCancelCause(context.Background())
	m := &Manager{closing: closing, hurry: hurry, opt: opt, log: opt.Logger, all: map[string]*execution{}, live: map[sentinels.RunID]int{}, places: map[placesOf]*places{}}
	if m.log == nil {
		m.log = slog.New(slog.DiscardHandler)
	}
	setDefault(&m.opt.MaxPerRun, 32)
	setDefault(&m.opt.MaxOutput, 32<<20)
	setDefault(&m.opt.MaxKept, 5000)
	setDefault(&m.opt.MaxDisk, 1<<30)
	setDefault(&m.opt.Grace, 2*time.Second)
	if opt.Dir == "" {
		dir, err := os.MkdirTemp("", "sentinel-shell-")
		if err != nil {
			return nil, fmt.Errorf("open shell: %w", err)
		}
		m.opt.Dir, m.temp = dir, true
	} else if err := os.MkdirAll(opt.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("open shell: %w", err)
	}
	if m.store = opt.Store; m.store == nil {
		m.store = files{m.opt.Dir, m.log}
	}
	if opt.Subreaper {
		if err := becomeSubreaper(); err != nil {
			return nil, err
		}
	}
	if limits != "" {
		m.log.Warn("shell executions have fewer guarantees on this system", "limits", limits)
	}
	return m, nil
}

// setDefault fills in a zero option.
func setDefault[T comparable](p *T, value T) {
	var zero T
	if *p == zero {
		*p = value
	}
}

// closeTime bounds how long Close waits for processes that the kernel still ends, and for
// what is done when confined commands have ended. What manages services waits longer for this process.
const closeTime = 5 * time.Second

// Close ends every live execution and returns when all have ended, but for what the kernel
// ends without this process. Calling it again does nothing more.
func (m *Manager) Close() error {
	m.mu.Lock()
	already := m.closed
	m.closed = true
	for _, p := range m.places {
		p.refuse()
	}
	list := m.snapshot(func(*execution) bool { return true })
	m.mu.Unlock()
	for _, e := range list {
		e.stop(reasonClosed)
	}
	t := time.AfterFunc(closeTime, func() { m.hurry(errClosing()) })
	defer t.Stop()
	m.group.Wait()
	m.supervisors.close()
	if m.temp && !already {
		return os.RemoveAll(m.opt.Dir)
	}
	return nil
}

// EndRun ends every process tree that the run started and returns when they
// are gone, those of an earlier process included.
func (m *Manager) EndRun(ctx context.Context, run sentinels.RunID) error {
	if run == "" {
		return nil
	}
	if err := m.recoverOnce(ctx); err != nil {
		return err
	}
	return m.endAll(ctx, run, func(*execution) bool { return true })
}

// EndBackground ends the process trees that end with a loop and that steps have started whose execution path ends
// chooses, and returns when they are gone.
func (m *Manager) EndBackground(ctx context.Context, run sentinels.RunID, ends func(path string) bool) error {
	m.mu.Lock()
	live := m.live[run]
	m.mu.Unlock()
	if live == 0 {
		return nil // asked at the end of every loop, and at every edit
	}
	return m.endAll(ctx, run, func(e *execution) bool {
		r := e.record()
		return r.Loop && ends(r.Path)
	})
}

// endAll ends the executions of a run that pick chooses, and returns when they are gone.
func (m *Manager) endAll(ctx context.Context, run sentinels.RunID, pick func(*execution) bool) error {
	m.mu.Lock()
	list := m.snapshot(func(e *execution) bool { return e.run == run && pick(e) })
	m.mu.Unlock()
	for _, e := range list {
		e.stop(reasonRunEnded)
	}
	for _, e := range list {
		if err := e.wait(ctx); err != nil {
			return fmt.Errorf("end run %q: execution %q: %w", run, e.id, err)
		}
	}
	return nil
}

// treeFile is the file that is there while the process tree of an execution may have
// processes; its supervisor makes and removes it.
func (m *Manager) treeFile(id string) string { return filepath.Join(m.opt.Dir, id+".tree") }

// Memory returns the resident bytes of the run's live process trees, 0 where
// the system does not say, and the execution path of the step that started the largest one.
func (m *Manager) Memory(run sentinels.RunID) (bytes int64, largest string) {
	m.mu.Lock()
	if m.live[run] == 0 {
		m.mu.Unlock()
		return 0, "" // asked every second for every run
	}
	list := m.snapshot(func(e *execution) bool { return e.run == run })
	m.mu.Unlock()
	var roots []int
	var paths []string
	for _, e := range list {
		if pid := e.root(); pid != 0 {
			roots, paths = append(roots, pid), append(paths, e.record().Path)
		}
	}
	if len(roots) == 0 {
		return 0, ""
	}
	var most int64
	for i, tree := range memoryOf(roots) {
		bytes += tree
		if tree > most {
			most, largest = tree, paths[i]
		}
	}
	return bytes, largest
}

// RunOf returns the run whose live execution has one of these processes as its root, "" if
// there is none.
func (m *Manager) RunOf(processes []int) sentinels.RunID {
	m.mu.Lock()
	live := m.snapshot((*execution).isLive)
	m.mu.Unlock()
	for _, e := range live {
		if root := e.root(); root > 0 && slices.Contains(processes, root) {
			return e.run
		}
	}
	return ""
}

// snapshot returns the executions that pick chooses, oldest start first. The
// caller holds m.mu.
func (m *Manager) snapshot(pick func(*execution) bool) []*execution {
	var list []*execution
	for _, e := range m.all {
		if pick(e) {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b *execution) int {
		if c := a.record().StartedAt.Compare(b.record().StartedAt); c != 0 {
			return c
		}
		return slices.Compare([]byte(a.id), []byte(b.id))
	})
	return list
}

// visible returns an execution that the caller may read. Another one is not known to it.
func (m *Manager) visible(ctx context.Context, call *command.Call, id string) (*execution, error) {
	e, err := m.find(ctx, id)
	if err == nil && !e.visibleTo(call) {
		return nil, unknownExecution(id)
	}
	return e, err
}

func unknownExecution(id string) error {
	return &abi.Error{Code: abi.NotFound, Field: "executionId", Permanent: true, Message: fmt.Sprintf("execution %q: not known", id)}
}

// find returns an execution, from the store if it is not in memory.
func (m *Manager) find(ctx context.Context, id string) (*execution, error) {
	if e := m.known(id); e != nil {
		return e, nil // without waiting for a slow disk
	}
	m.forgetting.RLock()
	defer m.forgetting.RUnlock()
	return m.lookUp(ctx, id)
}

// lookUp is find for a caller that holds forgetting.
func (m *Manager) lookUp(ctx context.Context, id string) (*execution, error) {
	if e := m.known(id); e != nil {
		return e, nil
	}
	if !validID(id) {
		return nil, unknownExecution(id)
	}
	r, err := m.store.Load(ctx, id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, unknownExecution(id)
	}
	if err != nil {
		return nil, err
	}
	return m.attach(r)
}

// attach brings a stored execution that is not live into memory.
func (m *Manager) attach(r Record) (*execution, error) {
	outputs, err := listOutputs(m.opt.Dir)
	if err != nil {
		return nil, err
	}
	return m.attachWith(r, outputs[r.ID])
}

// attachWith is attach for a caller that has listed the files of its output.
func (m *Manager) attachWith(r Record, files outputFiles) (*execution, error) {
	out, err := openSpill(m.opt.Dir, r.ID, m.opt.MaxOutput, files)
	if err != nil {
		return nil, err
	}
	set, _, err := compileRules(r.Rules, nil)
	if err != nil {
		return nil, fmt.Errorf("execution %q: stored rules: %w", r.ID, err)
	}
	fresh := &execution{
		m: m, id: r.ID, run: r.Run, owner: r.Owner, agent: agentOf(r), rec: r, rules: set, out: out, cursor: r.Cursor, changed: make(chan struct{}),
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.all[r.ID]; e != nil {
		return e, nil
	}
	m.all[r.ID] = fresh
	return fresh, nil
}

// ended forgets executions when enough have ended for that since the last time.
func (m *Manager) ended(e *execution) {
	size := e.diskSize()
	m.mu.Lock()
	m.unpruned += size
	due := m.unpruned > m.opt.MaxDisk/20 || len(m.all) > m.opt.MaxKept+m.opt.MaxKept/20
	if due {
		m.unpruned = 0
	}
	m.mu.Unlock()
	if due {
		m.prune()
	}
}

// prune forgets ended executions beyond MaxKept and MaxDisk: the oldest of the principal with the most,
// see package share. The newest one stays.
func (m *Manager) prune() {
	err := m.forget(func(list []*execution) []*execution {
		items := make([]share.Item[*execution], len(list))
		for i, e := range list {
			items[i] = share.Item[*execution]{Value: e, Owner: e.record().Share, Size: 1, Stays: i == len(list)-1}
		}
		gone := share.Beyond(items, int64(m.opt.MaxKept), int64(m.opt.MaxKept/2))
		items = slices.DeleteFunc(items, func(i share.Item[*execution]) bool { return slices.Contains(gone, i.Value) })
		for i := range items {
			items[i].Size = items[i].Value.diskSize()
		}
		return append(gone, share.Beyond(items, m.opt.MaxDisk, m.opt.MaxDisk/2)...)
	})
	if err != nil {
		m.log.Warn("forget executions", "error", err)
	}
}

// ForgetRuns forgets the executions of runs that are no longer kept, and removes
// their output. One that is still read stays until the bounds take it.
func (m *Manager) ForgetRuns(runs []sentinels.RunID) error {
	gone := map[sentinels.RunID]bool{}
	for _, run := range runs {
		gone[run] = true
	}
	return m.forget(func(list []*execution) []*execution {
		return slices.DeleteFunc(list, func(e *execution) bool { return !gone[e.run] })
	})
}

// forget deletes the output and record of ended executions that pick chooses of a list, the
// oldest start first.
func (m *Manager) forget(pick func([]*execution) []*execution) error {
	m.forgetting.Lock()
	defer m.forgetting.Unlock()
	m.mu.Lock()
	list := pick(m.snapshot(func(e *execution) bool { return e.pins == 0 && !e.isLive() }))
	for _, e := range list {
		delete(m.all, e.id)
	}
	m.mu.Unlock()
	var errs []error
	for _, e := range list {
		if err := e.forget(); err != nil {
			errs = append(errs, fmt.Errorf("forget execution %s: %w", e.id, err))
		}
	}
	return errors.Join(errs...)
}

// executionID derives the id from the call's key, so that a call that is made
// again after a crash starts the same execution. discriminator tells several
// programs of one call apart. Without a key it is random.
func executionID(key, discriminator string, random func() string) string {
	if key == "" {
		return random()
	}
	sum := sha256.Sum256([]byte(key + "\x00" + discriminator))
	return hex.EncodeToString(sum[:8])
}
