package process

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// runCommands are the commands after which a process executes a run.
var runCommands = map[string]bool{"sentinel/start": true, "sentinel/resume": true, "sentinel/retry": true, "sentinel/fork": true}

// ExecutesRun reports whether a command starts or resumes a run, which then needs a
// process that stays until the run ends.
func ExecutesRun(name string) bool { return runCommands[name] }

// RunOf returns the run in the result of such a command, empty if it has none.
func RunOf(result json.RawMessage) sentinels.RunID {
	var out struct {
		Run sentinels.RunID `json:"run"`
		ID  sentinels.RunID `json:"id"`
	}
	if json.Unmarshal(result, &out) != nil {
		return ""
	}
	return cmp.Or(out.Run, out.ID)
}

// refusal is the message of a command that was refused because the process ends.
const refusal = "the process that has the store is about to end and accepts no run"

// IsRefusal reports whether a process refused a run because it is about to end. Nothing
// was started then.
func IsRefusal(err error) bool {
	e := abi.As(err)
	return e != nil && e.Code == abi.Unavailable && strings.HasSuffix(e.Message, refusal)
}

// admission controls whether this process accepts runs from other processes. One
// that executes runs itself does; any other is about to end, and a run that it
// accepted would stop with it.
//
// # Concurrency
//
// Safe for concurrent use. close returns when the calls that were admitted have
// returned.
type admission struct {
	mu   sync.RWMutex // held for reading by calls that are admitted
	open bool

	runsMu sync.Mutex
	runs   []sentinels.RunID // admitted
}

func (a *admission) set(open bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open = open
}

func (a *admission) isOpen() bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.open
}

// admitted returns the runs that other processes started or resumed here.
func (a *admission) admitted() []sentinels.RunID {
	a.runsMu.Lock()
	defer a.runsMu.Unlock()
	return slices.Clone(a.runs)
}

// commands is the command registry for the control socket.
type commands Process

// List returns every command, by name.
func (c *commands) List() []command.Command { return c.host.Commands().List() }

// Version changes with the list.
func (c *commands) Version() string { return c.host.Commands().Version() }

// Lookup finds a command by its name.
func (c *commands) Lookup(name string) (command.Command, bool) {
	return c.host.Commands().Lookup(name)
}

// Call executes a command for another process.
func (c *commands) Call(ctx context.Context, call *command.Call) (json.RawMessage, error) {
	if !ExecutesRun(call.Command) {
		return c.host.CallAs(ctx, call)
	}
	a := &c.admission
	a.mu.RLock()
	defer a.mu.RUnlock()
	if !a.open {
		return nil, &abi.Error{Code: abi.Unavailable, Message: refusal, Hint: "try again"}
	}
	out, err := c.host.CallAs(ctx, call)
	if err == nil {
		// The engine lists a run once its start is durable, which may be later.
		a.runsMu.Lock()
		a.runs = append(a.runs, RunOf(out))
		a.runsMu.Unlock()
	}
	return out, err
}

// AcceptRuns makes this process start and resume runs for other processes, and
// publish the event log to them. [Process.Finish] ends that.
func (p *Process) AcceptRuns() {
	if p.events == nil {
		p.publishEvents()
	}
	p.admission.set(true)
}

// RefuseRuns ends [Process.AcceptRuns] at once. Active runs are unaffected.
func (p *Process) RefuseRuns() { p.admission.set(false) }

// Finish waits until this process executes no run: first for the tree of the run id,
// then for runs that other processes started here, each of which is reported to
// foreign. Runs that wait for a person do not count. When it returns nil, no run is
// accepted any more.
func (p *Process) Finish(ctx context.Context, id sentinels.RunID, foreign func(sentinels.RunID)) error {
	for {
		// A run that was admitted before is seen by next.
		p.RefuseRuns()
		run, mine, err := p.next(id)
		if err != nil || run == "" {
			return err
		}
		p.admission.set(true)
		if !mine {
			foreign(run)
		}
		if _, err := p.host.Runtime().Wait(ctx, run); err != nil {
			return err
		}
	}
}

// next returns a run that this process still executes, one of the tree of id first.
func (p *Process) next(id sentinels.RunID) (next sentinels.RunID, mine bool, err error) {
	rt := p.host.Runtime()
	runs, err := rt.Runs(runtime.RunFilter{Statuses: runtime.Unfinished()})
	for _, r := range runs {
		switch {
		case !r.Live:
		case InTree(runs, r, id):
			return r.ID, true, err
		case executes(r):
			next = r.ID
		}
	}
	for _, id := range p.admission.admitted() {
		if r, statusErr := rt.Status(id); statusErr == nil && r.Live && executes(r) {
			next = id
		}
	}
	return next, false, err
}

// executes reports whether a run executes, or will without a person.
func executes(r runtime.RunInfo) bool {
	return r.Status == sentinels.StatusRunning || r.Status == sentinels.StatusQueued
}

// StopAll stops every active run of this process.
func (p *Process) StopAll(ctx context.Context) error {
	rt := p.host.Runtime()
	runs, err := rt.Runs(runtime.RunFilter{Statuses: runtime.Unfinished()})
	errs := []error{err}
	for _, r := range slices.Backward(runs) { // a parent before its children
		if !r.Live {
			continue
		}
		if err := rt.Stop(ctx, r.ID); err != nil && abi.CodeOf(err) != abi.Conflict {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// maxDepth is more than runs can be nested.
const maxDepth = 64

// InTree reports whether r is the run id or one of its descendants. id need not be a
// root, because a child can be resumed by itself.
func InTree(runs []runtime.RunInfo, r runtime.RunInfo, id sentinels.RunID) bool {
	for range maxDepth {
		if r.ID == id || r.Parent == id || r.Root == id {
			return true
		}
		i := slices.IndexFunc(runs, func(p runtime.RunInfo) bool { return p.ID == r.Parent })
		if i < 0 {
			return false
		}
		r = runs[i]
	}
	return false
}
