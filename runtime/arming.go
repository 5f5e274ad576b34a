package runtime

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// arming is the triggers of all stored definitions. It arms them, keeps them in
// step with the definitions, and knows which runs are on.
//
// # Concurrency
//
// Three locks, taken in this order: change, while triggers are armed and
// disarmed; an [armedSentinel]'s, while it is decided about a fire; mu, for a
// few instructions. None is held while a commit or a run is waited for, except
// change, which nothing that fires ever takes and whose holders give up once
// Disarm or Close wants it. Goroutines are begun by spawn and waited for by
// Disarm.
type arming struct {
	rt *Runtime

	change sync.Mutex
	before bool // triggers were armed before in this process; guarded by change

	mu        sync.Mutex
	ctx       context.Context // of everything that is armed; nil while nothing is
	cancel    context.CancelCauseFunc
	work      sync.WaitGroup
	sentinels map[sentinels.ID]*armedSentinel
	on        map[sentinels.ID]map[sentinels.RunID]struct{} // runs that are not over and no children
	settling  []*store.Ticket                               // of what was decided before Disarm; guarded by change
}

func newArming(rt *Runtime) *arming {
	return &arming{rt: rt, sentinels: map[sentinels.ID]*armedSentinel{}, on: map[sentinels.ID]map[sentinels.RunID]struct{}{}}
}

// errDisarmed is what a fire gets that comes too late: nothing was decided.
var errDisarmed = errors.New("trigger is disarmed")

// Arm arms the triggers of all stored definitions and returns when they are. It
// keeps them armed as definitions are saved and deleted, until Disarm or Close.
// What waited when the process ended goes on: fires in the queue, and debounced
// ones. Runs that are not over count as on, so resume them before.
//
// A trigger that cannot be armed is shown by [Runtime.Triggers]; it is not an error.
// While the store takes no commits triggers are armed all the same: what they
// begin with is held and committed before the first fire.
// Arming again looks for definitions that could not be read before, as after a
// plugin was loaded.
func (rt *Runtime) Arm(ctx context.Context) error {
	a := rt.arming
	a.change.Lock()
	defer a.change.Unlock()
	rt.mu.Lock()
	closed := rt.closed
	rt.mu.Unlock()
	if closed {
		return ErrClosed
	}
	for ; len(a.settling) > 0; a.settling = a.settling[1:] {
		if err := rt.settled(ctx, a.settling[0]); err != nil {
			return err
		}
	}
	if err := a.findRuns(); err != nil {
		return err
	}
	stored, err := rt.Definitions()
	if err != nil {
		rt.log.Error("some definitions cannot be read, their triggers are not armed", "error", err)
	}
	if err := a.forgetDeleted(ctx, stored); err != nil {
		return err
	}
	a.mu.Lock()
	if a.ctx == nil {
		a.ctx, a.cancel = context.WithCancelCause(rt.ctx)
	}
	a.mu.Unlock()
	starting := !a.before
	a.before = true
	var armed []*armedSentinel
	var last *store.Ticket // commits have an order, so the last one stands for all
	for _, s := range stored {
		next, ticket, err := a.arm(ctx, s, starting, false)
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
		if err := rt.settled(ctx, last); err != nil {
			return err
		}
	}
	for _, s := range armed {
		s.run()
	}
	return nil
}

// Disarm stops all triggers. When it returns nothing fires and nothing that
// waited starts; runs go on. What waits is kept for the next Arm.
func (rt *Runtime) Disarm() {
	a := rt.arming
	a.mu.Lock()
	if a.ctx != nil {
		a.cancel(errDisarmed) // the holder of change no longer waits for a commit
	}
	a.mu.Unlock()
	a.change.Lock()
	defer a.change.Unlock()
	a.mu.Lock()
	a.ctx = nil
	all := a.sentinels
	a.sentinels = map[sentinels.ID]*armedSentinel{}
	a.mu.Unlock()
	for _, s := range all {
		s.retire()
	}
	a.work.Wait()
	for _, s := range all {
		if last := s.settled(); last != nil {
			a.settling = append(a.settling, last)
		}
	}
}

// within is ctx, ending also when the triggers are disarmed or the runtime
// closes.
func (a *arming) within(ctx context.Context) (context.Context, func()) {
	a.mu.Lock()
	until := a.ctx
	a.mu.Unlock()
	if until == nil {
		until = a.rt.ctx
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(until, func() { cancel(context.Cause(until)) })
	return ctx, func() { stop(); cancel(nil) }
}

// spawn begins a goroutine that Disarm waits for; false says that nothing is
// armed any more.
func (a *arming) spawn(fn func(ctx context.Context)) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ctx == nil {
		return false
	}
	ctx := a.ctx
	a.work.Add(1)
	go func() {
		defer a.work.Done()
		fn(ctx)
	}()
	return true
}

func (a *arming) armed() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ctx != nil
}

func (a *arming) sentinel(id sentinels.ID) *armedSentinel {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sentinels[id]
}

// refresh brings the triggers of one definition in step with what the store has
// of it; again says that this may differ although the revision is the same.
// The caller that changed it waits for that, so that an event emitted afterwards finds
// its trigger. If it is disarmed meanwhile, nothing is armed, without an error.
func (a *arming) refresh(ctx context.Context, id sentinels.ID, again bool) error {
	a.change.Lock()
	defer a.change.Unlock()
	ctx, done := a.within(ctx)
	defer done()
	head, err := a.rt.head(id)
	if err != nil {
		return err
	}
	if head.Revision == 0 || head.Deleted {
		err = a.forget(ctx, id)
	} else if a.armed() {
		err = a.rearm(ctx, head, again)
	}
	if errors.Is(err, errDisarmed) {
		return nil
	}
	return err
}

// rearm arms one sentinel and lets it run. The caller holds change.
func (a *arming) rearm(ctx context.Context, stored Stored, again bool) error {
	s, ticket, err := a.arm(ctx, stored, false, again)
	if err == nil && ticket != nil {
		err = a.rt.settled(ctx, ticket)
	}
	if err == nil && s != nil {
		s.run()
	}
	return err
}

// forget disarms a sentinel that is gone and deletes what was kept of its
// triggers. The caller holds change.
func (a *arming) forget(ctx context.Context, id sentinels.ID) error {
	a.mu.Lock()
	s := a.sentinels[id]
	delete(a.sentinels, id)
	a.mu.Unlock()
	if s != nil {
		if err := s.end(ctx); err != nil {
			return err
		}
	}
	puts, err := a.rt.forgetTriggers(id, "")
	if err != nil || len(puts) == 0 {
		return err
	}
	return a.rt.settled(ctx, a.rt.db.Enqueue(store.Batch{Puts: puts}))
}

// forgetDeleted deletes what a crash left of triggers whose definition was
// deleted.
func (a *arming) forgetDeleted(ctx context.Context, stored []Stored) error {
	there := map[sentinels.ID]bool{}
	for _, s := range stored {
		there[s.ID] = true
	}
	var gone []sentinels.ID
	err := a.rt.db.Scan(bucketTriggers, nil, nil, false, func(key, _ []byte) bool {
		id := sentinels.ID(key[:max(0, slices.Index(key, 0))])
		if !there[id] && !slices.Contains(gone, id) {
			gone = append(gone, id)
		}
		return true
	})
	for _, id := range gone {
		// Definitions that cannot be read are not listed and not gone.
		if head, bad := a.rt.head(id); err == nil && bad == nil && (head.Revision == 0 || head.Deleted) {
			err = a.forget(ctx, id)
		}
	}
	return err
}

// arm prepares the triggers of a definition and returns the sentinel if it has
// to be run once the ticket is done; nil if all is as it should be. The caller
// holds change. again arms also what is armed.
func (a *arming) arm(ctx context.Context, stored Stored, starting, again bool) (*armedSentinel, *store.Ticket, error) {
	old := a.sentinel(stored.ID)
	if old != nil && old.begun && old.revision == stored.Revision && !again && old.problem == "" {
		return nil, nil, nil
	}
	if old != nil {
		if err := old.end(ctx); err != nil {
			return nil, nil, err
		}
	}
	s, b, dropped, err := readArmed(a, stored, starting)
	if err != nil {
		return nil, nil, err
	}
	a.mu.Lock()
	a.sentinels[stored.ID] = s
	a.mu.Unlock()
	if len(b.Puts) == 0 {
		return s, nil, nil
	}
	ticket := a.rt.db.Enqueue(b)
	ticket.OnDone(func(err error) {
		for _, f := range dropped {
			if err == nil {
				a.rt.tellTrigger(f)
			}
		}
	})
	return s, ticket, nil
}

// preview is the triggers of a definition as they would be armed.
func (a *arming) preview(stored Stored) (*armedSentinel, error) {
	s, _, _, err := readArmed(a, stored, false)
	return s, err
}

// PauseTriggers holds the triggers of a sentinel back, or lets them go on. That
// is durable. While they are paused nothing fires and nothing that waits starts;
// what happens meanwhile is found afterwards by those kinds that can, schedules
// as their catch-up says.
func (rt *Runtime) PauseTriggers(ctx context.Context, id sentinels.ID, paused bool) error {
	if err := rt.writable(); err != nil {
		return err
	}
	if _, err := rt.Definition(id); err != nil {
		return err
	}
	put := encodePut(bucketTriggers, triggerPrefix(id), sentinelRecord{Paused: paused})
	put.Delete = !paused
	if err := rt.db.Enqueue(store.Batch{Puts: []store.Put{put}}).Wait(ctx); err != nil {
		return err
	}
	return rt.arming.refresh(context.WithoutCancel(ctx), id, true)
}

// notArmed is the error for what needs armed triggers.
func notArmed(id sentinels.ID) error {
	e := errf(abi.Unavailable, "the triggers of sentinel %q are not armed", id)
	e.Hint = "they are while the host serves"
	return e
}
