package dispatch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/internal/rate"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/trigger"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Dispatcher arms the triggers of all stored definitions, keeps them in step with
// the definitions, and knows which runs are active.
//
// # Concurrency
//
// All methods are safe for concurrent use. Four locks are taken in this order:
// pausing, while a pause is compared and written; change, while triggers are armed and disarmed; the lock of an [armedSentinel],
// while an outcome is decided; mu, for a few instructions. None is held while a
// commit or a run is waited for, except change and pausing: no firing ever takes them, and the
// holder of change stops waiting once Disarm or Close needs it. Goroutines are started by
// spawn, and Disarm waits for them; those that take change are started by
// resumeLater.
type Dispatcher struct {
	opt   Options
	log   *slog.Logger
	rates *rate.Limiter   // of starts: hundreds of schedules of a second each would keep the disk and the processors from the runs of persons
	base  context.Context // ends with Close
	end   context.CancelCauseFunc

	pausing  sync.Mutex // of EndPause, which takes change behind it
	change   sync.Mutex
	before   bool            // triggers were armed before in this process; guarded by change
	settling []*store.Ticket // the last decisions before Disarm; guarded by change

	mu        sync.Mutex
	opened    time.Time       // when triggers were armed first, or created; what happened before is late
	ctx       context.Context // of everything that is armed; nil while nothing is
	cancel    context.CancelCauseFunc
	work      sync.WaitGroup
	resuming  sync.WaitGroup // goroutines of resumeLater; started under mu, and none once ctx has ended
	sentinels map[sentinels.ID]*armedSentinel
	active    map[sentinels.ID]map[sentinels.RunID]activeRun // runs that have not ended, without child runs
	asking    map[sentinels.RunID]struct{}                   // active runs that have asked about an interrupted call
	refused   map[string]*trigger.Requests                   // by key of a trigger: the requests that it did not accept
	ended     map[sentinels.ID][]activeRun                   // the newest that have; deleted with the sentinel
}

// errDisarmed is the error of a firing that comes too late: nothing was decided.
var errDisarmed = errors.New("trigger is disarmed")

// New returns a dispatcher with nothing armed. It starts no goroutine.
func New(opt Options) *Dispatcher {
	if opt.Secret == nil {
		opt.Secret = func(string) (string, bool) { return "", false }
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Observe == nil {
		opt.Observe = func(trigger.Fired) {}
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	d := &Dispatcher{
		rates: rate.New(opt.AgentStarts, opt.AgentStarts/4, func(by string) {
			opt.Log.Warn("triggers fire more often than they may start runs: firings wait or are skipped",
				"by", by, "limit", opt.AgentStarts, "setting", "limits.agentStarts")
		}),
		opt: opt, log: opt.Log, opened: opt.Now().Round(0),
		sentinels: map[sentinels.ID]*armedSentinel{}, active: map[sentinels.ID]map[sentinels.RunID]activeRun{}, asking: map[sentinels.RunID]struct{}{},
		ended: map[sentinels.ID][]activeRun{}, refused: map[string]*trigger.Requests{},
	}
	d.base, d.end = context.WithCancelCause(context.Background())
	return d
}

// held says why a firing of an agent's triggers waits.
func (d *Dispatcher) held(by string) string {
	return fmt.Sprintf("the triggers of %s start at most %d runs a minute (limits.agentStarts)", by, d.opt.AgentStarts)
}

// Arm arms the triggers of all stored definitions and returns when they are armed.
// They follow the definitions until Disarm or Close. Firings that were queued or
// debounced when the process ended continue. Runs that have not ended count as
// active, so they must be resumed before.
//
// A trigger that cannot be armed is shown by [Dispatcher.Triggers]; it is not an
// error. While the store takes no commits triggers are armed too: their first
// records are held and committed before the first firing. Arming again reads
// definitions that could not be read before, as after a plugin was loaded.
func (d *Dispatcher) Arm(ctx context.Context) error {
	d.change.Lock()
	defer d.change.Unlock()
	if err := d.opt.Alive(); err != nil {
		return err
	}
	for ; len(d.settling) > 0; d.settling = d.settling[1:] {
		if err := d.opt.Settle(ctx, d.settling[0]); err != nil {
			return err
		}
	}
	if err := d.findRuns(); err != nil {
		return err
	}
	stored, err := d.opt.Definitions.All()
	if err != nil {
		d.log.Error("some definitions cannot be read, their triggers are not armed", "error", err)
	}
	if err := d.forgetDeleted(ctx, stored); err != nil {
		return err
	}
	d.mu.Lock()
	if d.ctx == nil {
		d.ctx, d.cancel = context.WithCancelCause(d.base)
	}
	d.mu.Unlock()
	starting := !d.before
	d.before = true
	return d.armAll(ctx, stored, starting)
}

// armAll arms all definitions with one wait for their commits: commits are
// ordered, so the last one stands for all. The caller holds change.
func (d *Dispatcher) armAll(ctx context.Context, stored []Revision, starting bool) error {
	var armed []*armedSentinel
	var last *store.Ticket
	for _, r := range stored {
		next, ticket, err := d.arm(ctx, r, starting, false)
		if err != nil {
			return err
		}
		if ticket != nil {
			last = ticket
		}
		if next != nil {
			armed = append(armed, next)
		}
	}
	if last != nil {
		if err := d.opt.Settle(ctx, last); err != nil {
			return err
		}
	}
	if starting {
		d.mu.Lock()
		d.opened = d.opt.Now().Round(0)
		d.mu.Unlock()
	}
	for _, s := range armed {
		s.run()
	}
	return nil
}

// Disarm stops all triggers. When it returns nothing fires and nothing that waited
// starts; active runs continue. What waits is kept for the next Arm.
func (d *Dispatcher) Disarm() {
	d.mu.Lock()
	if d.ctx != nil {
		d.cancel(errDisarmed) // the holder of change stops waiting for a commit
	}
	d.mu.Unlock()
	d.resuming.Wait() // they take change
	d.change.Lock()
	defer d.change.Unlock()
	d.mu.Lock()
	d.ctx = nil
	all := d.sentinels
	d.sentinels = map[sentinels.ID]*armedSentinel{}
	d.mu.Unlock()
	for _, s := range all {
		s.retire()
	}
	d.work.Wait()
	for _, s := range all {
		if last := s.settled(); last != nil {
			d.settling = append(d.settling, last)
		}
	}
}

// Close disarms for good. Options.Alive must fail from before Close is called, so
// that no Arm comes after it. Close may be called again.
func (d *Dispatcher) Close() {
	d.end(errDisarmed)
	d.Disarm()
}

// within returns ctx, ending also when the triggers are disarmed or the dispatcher
// closes.
func (d *Dispatcher) within(ctx context.Context) (context.Context, func()) {
	d.mu.Lock()
	until := d.ctx
	d.mu.Unlock()
	if until == nil {
		until = d.base
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(until, func() { cancel(context.Cause(until)) })
	return ctx, func() { stop(); cancel(nil) }
}

// spawn starts a goroutine that Disarm waits for; false means that nothing is armed
// any more.
func (d *Dispatcher) spawn(fn func(ctx context.Context)) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx == nil {
		return false
	}
	ctx := d.ctx
	d.work.Add(1)
	go func() {
		defer d.work.Done()
		fn(ctx)
	}()
	return true
}

func (d *Dispatcher) armed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ctx != nil
}

func (d *Dispatcher) sentinel(id sentinels.ID) *armedSentinel {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sentinels[id]
}

// notArmed is the error of calls that need armed triggers.
func notArmed(id sentinels.ID) error {
	e := failure.New(abi.Unavailable, "the triggers of sentinel %q are not armed", id)
	e.Hint = "they are while the host serves"
	return e
}
