package runtime

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/execution"
	"github.com/sentinel-runtime/sentinel/runtime/internal/execution/step"
	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// OpenOn opens a runtime on a store of the test's.
func OpenOn(ctx context.Context, db store.Store, opt Options) (*Runtime, error) {
	opt.store = db
	return Open(ctx, opt)
}

// Filter evaluates the filter of a trigger of a stored sentinel, without an event.
func Filter(ctx context.Context, rt *Runtime, id sentinels.ID, condition string) (bool, error) {
	return rt.filter(ctx, id, condition, nil)
}

// A GoModule stands behind the guest seam in place of a plugin: its steps are
// Go functions. Only tests have such a thing.
type GoModule struct {
	Name        string
	Types       []wasm.StepType
	Permissions []wasm.Permission
	Step        func(g *GoGuest) (any, error)
}

// A GoGuest is one run of a GoModule's step.
type GoGuest struct {
	Input Input
	ctx   context.Context
	inv   wasm.Invocation
}

// Input is clause A3 of the ABI.
type Input struct {
	Step struct {
		Type   string                     `json:"type"`
		Path   string                     `json:"path"`
		Fields map[string]json.RawMessage `json:"fields"`
	} `json:"step"`
	Attempt int             `json:"attempt"`
	Retry   json.RawMessage `json:"retry"`
	State   json.RawMessage `json:"state"`
}

type unwound struct{ err error }

// Call makes a host call; an error of the host function unwinds, as in Wasm.
func (g *GoGuest) Call(function string, request any) Answer {
	b, err := json.Marshal(request)
	if err != nil {
		panic(err)
	}
	r, err := g.inv.Call(g.ctx, function, b)
	if err != nil {
		panic(unwound{err})
	}
	var a Answer
	if err := json.Unmarshal(r.Body, &a); err != nil {
		panic(err)
	}
	return a
}

// Answer is the answer to a host call.
type Answer struct {
	OK    json.RawMessage `json:"ok"`
	Error *abi.Error      `json:"error"`
}

func (m *GoModule) Digest() string { return "go-" + m.Name }
func (m *GoModule) Manifest() wasm.Manifest {
	return wasm.Manifest{Name: m.Name, ABI: 1, Steps: m.Types, Permissions: m.Permissions}
}
func (m *GoModule) Bytes() []byte { return nil }

func (m *GoModule) Validate(context.Context, string, json.RawMessage) ([]wasm.Problem, error) {
	return nil, nil
}

func (m *GoModule) Run(ctx context.Context, inv wasm.Invocation) (res wasm.Result, err error) {
	g := &GoGuest{ctx: ctx, inv: inv}
	if err := json.Unmarshal(inv.WholeInput(), &g.Input); err != nil {
		return res, err
	}
	defer func() {
		switch p := recover().(type) {
		case nil:
		case unwound:
			err = p.err
		default:
			panic(p)
		}
	}()
	out, err := m.Step(g)
	if err != nil {
		return res, err
	}
	res.Output, err = json.Marshal(out)
	return res, err
}

// AddModule makes m's step types live.
func AddModule(rt *Runtime, m *GoModule) error {
	return rt.plugins.Put(rt.ctx, m, true, plugin.Info{Trusted: true})
}

// Commits returns how many commits the store has made.
func Commits(rt *Runtime) uint64 { return uint64(rt.db.Stats().Commits) }

// Resident returns how many guests wait in memory.
func Resident(rt *Runtime) int { return rt.exec.Resident() }

// CallKey is the idempotency key of a call.
func CallKey(run string, iteration int, path string, seq int) string {
	return step.CallKey(step.ExecutionKey(sentinels.RunID(run), iteration, path), seq)
}

// ShiftJournal moves every time in a run's journal by d, as if all had happened
// earlier.
func ShiftJournal(db store.Store, run string, d time.Duration) error {
	us := d.Microseconds()
	return EditJournal(db, run, func(rec *journal.Record) {
		rec.Time += us
		if rec.CallStart != nil && rec.CallStart.Due != 0 {
			rec.CallStart.Due += us
		}
		if rec.Retry != nil {
			rec.Retry.Due += us
		}
	})
}

// EditJournal changes the records of a run that no process executes.
func EditJournal(db store.Store, run string, edit func(*journal.Record)) error {
	var b store.Batch
	err := db.Journal(run, 1, func(seq uint64, raw []byte) error {
		rec, err := journal.Decode(raw)
		if err != nil {
			return err
		}
		edit(rec)
		if raw, err = journal.Encode(rec); err != nil {
			return err
		}
		b.Appends = append(b.Appends, store.Append{Run: run, Seq: seq, Record: raw})
		return nil
	})
	if err != nil {
		return err
	}
	trim := store.Batch{Trims: []store.Trim{{Run: run, To: store.All}}}
	if err := db.Enqueue(trim).Wait(context.Background()); err != nil {
		return err
	}
	return db.Enqueue(b).Wait(context.Background())
}

// Subscribers returns how many wait for events.
func Subscribers(rt *Runtime) int { return rt.events.Subscriptions() }

// Buckets returns the names of all buckets of the store.
func Buckets() []string { return buckets }

// StoreRuns writes the summaries of n runs that were never executed.
func StoreRuns(rt *Runtime, n int, info func(int) RunInfo) error {
	var last *store.Ticket
	for i := 0; i < n; {
		var b store.Batch
		for ; i < n && len(b.Puts) < 3000; i++ {
			r := info(i)
			r.ID = execution.NewRunID()
			value, err := json.Marshal(r)
			if err != nil {
				return err
			}
			b.Puts = append(append(b.Puts, rt.index.StartPuts(r)...), store.Put{Bucket: execution.BucketRuns, Key: []byte(r.ID), Value: value})
		}
		last = rt.db.Enqueue(b)
	}
	return last.Wait(context.Background())
}

// StartEvent is the event that started a run, nil for none.
func StartEvent(rt *Runtime, id sentinels.RunID) (*sentinels.Event, error) {
	st, err := history.Fold(rt.db, id, 1, nil)
	if err != nil {
		return nil, err
	}
	return st.Start.Event, nil
}

// StoreOf returns the runtime's store.
func StoreOf(rt *Runtime) store.Store { return rt.db }

// WithSweepInterval sets the least time between two sweeps of blobs.
func WithSweepInterval(opt Options, d time.Duration) Options {
	opt.sweepInterval = d
	return opt
}

// WithClock sets the wall clock of a runtime.
func WithClock(opt Options, now func() time.Time) Options {
	opt.now = now
	return opt
}
