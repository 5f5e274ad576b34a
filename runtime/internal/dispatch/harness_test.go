package dispatch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/dispatch"
	"github.com/sentinel-runtime/sentinel/runtime/internal/eventlog"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/trigger"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// A harness is a dispatcher on a store in memory, with fakes of everything else.
type harness struct {
	*dispatch.Dispatcher
	options dispatch.Options
	db      *store.Memory
	runs    *fakeRuns
	defs    *fakeDefinitions
	log     *fakeLog
	kind    *fakeKind

	mu        sync.Mutex
	observed  []trigger.Fired
	announced []string // events
	closed    error    // of Alive
	readOnly  error    // of Writable
}

// newHarness returns a dispatcher with nothing armed. It and the store are closed at
// the end of the test.
func newHarness(t testing.TB, db *store.Memory) *harness {
	h := &harness{db: db, defs: &fakeDefinitions{list: map[sentinels.ID]*sentinels.Definition{}}, log: &fakeLog{}, kind: &fakeKind{armed: map[sentinels.ID]*fakeArmed{}}}
	h.runs = &fakeRuns{h: h, runs: map[sentinels.RunID]dispatch.Run{}, keys: map[string]sentinels.RunID{}, at: map[sentinels.RunID]time.Time{}}
	ids := 0
	h.options = dispatch.Options{
		Store: db, Runs: h.runs, Definitions: h.defs, Events: h.log, Kinds: triggers.Set{h.kind},
		Filter: func(_ context.Context, _ sentinels.ID, condition string, e *sentinels.Event) (bool, error) {
			if condition == "broken" {
				return false, errors.New("the filter is broken")
			}
			return condition == e.Name, nil
		},
		ChainProblem: func(_ sentinels.ID, e *sentinels.Event) string {
			if e.Hops >= 16 {
				return "the chain is too long"
			}
			return ""
		},
		Workspace: func(dispatch.Revision, *sentinels.Definition) (string, error) { return "/work", nil },
		NewRunID: func() sentinels.RunID {
			ids++
			return sentinels.RunID(fmt.Sprintf("run%03d", ids))
		},
		Alive:    func() error { return h.get(&h.closed) },
		Writable: func() error { return h.get(&h.readOnly) },
		Await:    func(ctx context.Context, t *store.Ticket) error { return t.Wait(ctx) },
		Settle:   func(ctx context.Context, t *store.Ticket) error { return t.Wait(ctx) },
		Announce: func(id sentinels.ID, word, _ string, data any, b store.Batch) *store.Ticket {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.announced = append(h.announced, fmt.Sprintf("%s %s %+v", id, word, data))
			return db.Enqueue(b)
		},
		Observe: func(f trigger.Fired) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.observed = append(h.observed, f)
		},
	}
	h.Dispatcher = dispatch.New(h.options)
	t.Cleanup(func() {
		h.Close()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func (h *harness) get(err *error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return *err
}

func (h *harness) set(err *error, to error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	*err = to
}

// arm stores a definition with one trigger, whose options are given as JSON, and
// arms it.
func (h *harness) arm(t testing.TB, id sentinels.ID, overlap sentinels.Overlap, options string) {
	t.Helper()
	h.defs.save(id, overlap, options)
	if err := h.Arm(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// fire fires the trigger of a sentinel.
func (h *harness) fire(t testing.TB, id sentinels.ID, f triggers.Firing) triggers.Admission {
	t.Helper()
	adm, err := h.kind.fire(t.Context(), id, f)
	if err != nil {
		t.Fatal(err)
	}
	return adm
}

func (h *harness) info(t testing.TB, id sentinels.ID) trigger.Info {
	t.Helper()
	infos, err := h.Triggers(id, 0)
	if err != nil || len(infos) != 1 {
		t.Fatalf("%d triggers, %v", len(infos), err)
	}
	return infos[0]
}

// outcomes returns those that the observer has received.
func (h *harness) outcomes() (list []triggers.Outcome) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.observed {
		list = append(list, f.Outcome)
	}
	return list
}

// eventually waits until a condition holds.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting for %s", what)
		}
	}
}

// firing returns a firing with an event of a name.
func firing(name string) triggers.Firing {
	return triggers.Firing{Event: &sentinels.Event{Name: name}}
}

// fakeRuns starts runs that last until they are stopped or ended.
type fakeRuns struct {
	h *harness

	mu    sync.Mutex
	runs  map[sentinels.RunID]dispatch.Run
	keys  map[string]sentinels.RunID
	at    map[sentinels.RunID]time.Time
	begun []sentinels.RunID  // in order
	event []*sentinels.Event // of each of begun
	fail  error              // of Start
	block chan struct{}      // holds Stop until it is closed; nil does not
}

func (r *fakeRuns) Start(s dispatch.Start) (sentinels.RunID, *store.Ticket, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail != nil {
		return "", nil, r.fail
	}
	if first, ok := r.keys[s.Key]; ok && s.Key != "" {
		return first, nil, nil
	}
	r.keys[s.Key] = s.ID
	r.at[s.ID] = time.Now()
	r.begun, r.event = append(r.begun, s.ID), append(r.event, s.Event)
	r.runs[s.ID] = dispatch.Run{Sentinel: s.Definition.ID, Status: sentinels.StatusRunning}
	r.h.RunStarted(s.Definition.ID, s.ID, eventlog.ChainOf(s.Event).Through(s.Definition.ID))
	return s.ID, r.h.db.Enqueue(store.Batch{Puts: s.Puts}), nil
}

func (r *fakeRuns) Stop(ctx context.Context, id sentinels.RunID) error {
	r.mu.Lock()
	block := r.block
	r.mu.Unlock()
	if block != nil {
		select {
		case <-block:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return r.end(id, sentinels.StatusStopped)
}

// end ends a run as the engine does.
func (r *fakeRuns) end(id sentinels.RunID, status sentinels.Status) error {
	ended, err := r.decide(id, status)
	if err == nil {
		ended()
	}
	return err
}

// decide ends a run, which is durable when the returned function is called.
func (r *fakeRuns) decide(id sentinels.RunID, status sentinels.Status) (durable func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	run, ok := r.runs[id]
	if !ok || run.Status.Final() {
		return nil, &abi.Error{Code: abi.Conflict, Message: "the run has ended"}
	}
	run.Status = status
	r.runs[id] = run
	return func() { r.h.RunEnded(run.Sentinel, id) }, nil
}

// ask makes a run undecided.
func (r *fakeRuns) ask(id sentinels.RunID) {
	r.mu.Lock()
	run := r.runs[id]
	run.Status = sentinels.StatusWaiting
	r.runs[id] = run
	r.mu.Unlock()
	r.h.RunAsks(run.Sentinel, id)
}

func (r *fakeRuns) Undecided(id sentinels.RunID) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.runs[id].Status != sentinels.StatusWaiting {
		return ""
	}
	return "0!1"
}

func (r *fakeRuns) EndUndecided(_ context.Context, id sentinels.RunID) (bool, error) {
	if r.Undecided(id) == "" {
		return false, nil
	}
	return true, r.end(id, sentinels.StatusFailed)
}

func (r *fakeRuns) Ran(id sentinels.ID, from, to time.Time, completed bool) (bool, sentinels.RunID, sentinels.Status, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var newest sentinels.RunID
	for _, run := range r.begun {
		at, status := r.at[run], r.runs[run].Status
		if r.runs[run].Sentinel != id || at.Before(from) || at.After(to) {
			continue
		}
		if !completed || status == sentinels.StatusCompleted {
			return true, run, status, nil
		}
		newest = run
	}
	return false, newest, r.runs[newest].Status, nil
}

func (r *fakeRuns) Unfinished() (list []sentinels.RunID, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, run := range r.runs {
		if !run.Status.Final() {
			list = append(list, id)
		}
	}
	return list, nil
}

func (r *fakeRuns) Run(id sentinels.RunID) (dispatch.Run, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	run, ok := r.runs[id]
	if !ok {
		return run, &abi.Error{Code: abi.NotFound, Message: "no such run"}
	}
	return run, nil
}

// newest returns the run that was started last, and its event.
func (r *fakeRuns) newest() (sentinels.RunID, *sentinels.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.begun[len(r.begun)-1], r.event[len(r.event)-1]
}

func (r *fakeRuns) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.runs)
}

// fakeDefinitions are definitions with one trigger each.
type fakeDefinitions struct {
	mu       sync.Mutex
	list     map[sentinels.ID]*sentinels.Definition
	broken   map[sentinels.ID]error // of definitions that cannot be read
	by       map[sentinels.ID]string
	revision int
}

func (d *fakeDefinitions) save(id sentinels.ID, overlap sentinels.Overlap, options string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.revision++
	d.list[id] = &sentinels.Definition{ID: id, Concurrency: overlap, Triggers: []sentinels.Trigger{{Type: "fake", Options: json.RawMessage(options)}}}
}

// spoil saves a revision that cannot be read.
func (d *fakeDefinitions) spoil(id sentinels.ID, why error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.revision++
	d.broken = map[sentinels.ID]error{id: why}
}

func (d *fakeDefinitions) delete(id sentinels.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.list, id)
}

func (d *fakeDefinitions) Newest(id sentinels.ID) (dispatch.Revision, bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	def, ok := d.list[id]
	broken := d.broken[id]
	return dispatch.Revision{ID: id, Number: d.revision, By: d.by[id], Decode: func() (*sentinels.Definition, error) { return def, broken }}, ok, nil
}

func (d *fakeDefinitions) Stored(id sentinels.ID) bool {
	_, found, err := d.Newest(id)
	return found || err != nil
}

func (d *fakeDefinitions) All() (list []dispatch.Revision, err error) {
	d.mu.Lock()
	ids := []sentinels.ID{}
	for id := range d.list {
		ids = append(ids, id)
	}
	d.mu.Unlock()
	slices.Sort(ids)
	for _, id := range ids {
		r, _, _ := d.Newest(id)
		list = append(list, r)
	}
	return list, nil
}

// fakeLog is an event log in which nothing matches. It grows by steps.
type fakeLog struct {
	mu       sync.Mutex
	position uint64
	after    []uint64 // of the calls of Await
}

func (l *fakeLog) Position(string) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.position
}

func (l *fakeLog) Quarter(string) uint64 { return 10 }

func (l *fakeLog) Await(ctx context.Context, _ string, after uint64) (dispatch.Sighting, error) {
	l.mu.Lock()
	l.after = append(l.after, after)
	l.mu.Unlock()
	<-ctx.Done()
	return dispatch.Sighting{Through: l.Position("")}, context.Cause(ctx)
}

func (l *fakeLog) grow(n uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.position += n
}

// read returns the position of the newest call of Await.
func (l *fakeLog) read() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.after) == 0 {
		return 0
	}
	return l.after[len(l.after)-1]
}

// fakeKind fires what a test gives it, and reads events if its option says so.
type fakeKind struct {
	mu    sync.Mutex
	armed map[sentinels.ID]*fakeArmed
}

func (*fakeKind) Describe() triggers.Description {
	return triggers.Description{Name: "fake", Fires: "when a test wants it"}
}

func (*fakeKind) Check(t sentinels.Trigger) error {
	var o fakeOptions
	return triggers.ReadOptions(t, &o)
}

type fakeOptions struct {
	Tag   string `json:"tag"`
	Reads string `json:"reads"` // a pattern
	Joins bool   `json:"joins"` // the trigger is a Joiner
	// Expect has a run expected within 10 minutes of each full hour, and "completed" a completed one.
	Expect string `json:"expect"`
}

func (k *fakeKind) Arm(t sentinels.Trigger, env triggers.Env) (triggers.Armed, error) {
	a := &fakeArmed{env: env, firings: make(chan fakeFiring)}
	if err := triggers.ReadOptions(t, &a.opt); err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.armed[env.Sentinel] = a
	if a.opt.Joins {
		return joiningArmed{a}, nil
	}
	return a, nil
}

// Expects implements triggers.Expecter.
func (a *fakeArmed) Expects() (within time.Duration, completed bool) {
	if a.opt.Expect != "" {
		within = 10 * time.Minute
	}
	return within, a.opt.Expect == "completed"
}

func (*fakeArmed) Planned(after time.Time) time.Time { return after.Truncate(time.Hour).Add(time.Hour) }

// joiningArmed joins the names of events.
type joiningArmed struct{ *fakeArmed }

func (joiningArmed) Join(older, newer *sentinels.Event) (*sentinels.Event, error) {
	joined := *newer
	joined.Name = older.Name + "+" + newer.Name
	return &joined, nil
}

type fakeFiring struct {
	triggers.Firing
	reply chan<- error
	adm   *triggers.Admission
}

// fire returns when the trigger of a sentinel has fired.
func (k *fakeKind) fire(ctx context.Context, id sentinels.ID, f triggers.Firing) (adm triggers.Admission, err error) {
	k.mu.Lock()
	a := k.armed[id]
	k.mu.Unlock()
	reply := make(chan error, 1)
	select {
	case a.firings <- fakeFiring{f, reply, &adm}:
		err = <-reply
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	return adm, err
}

type fakeArmed struct {
	env     triggers.Env
	opt     fakeOptions
	firings chan fakeFiring
}

func (a *fakeArmed) Run(ctx context.Context, fire triggers.FireFunc) error {
	if a.opt.Reads != "" {
		_, _, _, err := a.env.Events.Next(ctx, a.opt.Reads, "", a.env.Positions[0])
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	for {
		select {
		case f := <-a.firings:
			var err error
			*f.adm, err = fire(ctx, f.Firing)
			f.reply <- err
		case <-ctx.Done():
			return nil
		}
	}
}

// Receive fires one event for each request.
func (a *fakeArmed) Receive(r triggers.Request) ([]triggers.Firing, error) {
	return []triggers.Firing{firing(string(r.Body))}, nil
}
