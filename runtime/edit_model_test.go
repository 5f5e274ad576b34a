package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// An editOp is one edit, as the model understands it: of a slice of values.
type editOp struct {
	kind   string   // add, update, remove, save, rollback
	k      int      // place, modulo what there is
	value  string   // add, update
	values []string // save
	to     int      // rollback: the revision
}

// on returns what the op makes of values; ok is false if there is nothing to do it to.
func (o editOp) on(values []string, history map[int][]string) (next []string, ok bool) {
	next = slices.Clone(values)
	switch o.kind {
	case "add":
		return slices.Insert(next, o.k%(len(next)+1), o.value), true
	case "save":
		return slices.Clone(o.values), true
	case "rollback":
		return slices.Clone(history[o.to]), true
	}
	if len(next) == 0 {
		return nil, false
	}
	i := o.k % len(next)
	if o.kind == "remove" {
		return slices.Delete(next, i, i+1), true
	}
	next[i] = o.value
	return next, true
}

var errNothing = errors.New("there is nothing to do it to")

// edit is the op as the engine sees it: of steps, by address.
func (o editOp) edit(d *sentinels.Definition) (*sentinels.Definition, error) {
	step := sentinels.Step{Type: "call", Fields: map[string]json.RawMessage{
		"command": json.RawMessage(`"world/look"`), "value": json.RawMessage(strconv.Quote(o.value))}}
	if o.kind == "add" {
		return d.InsertStep(strconv.Itoa(o.k%(len(d.Steps)+1)), step)
	}
	if len(d.Steps) == 0 {
		return nil, errNothing
	}
	at := strconv.Itoa(o.k % len(d.Steps))
	if o.kind == "remove" {
		return d.RemoveStep(at)
	}
	return d.ReplaceStep(at, step)
}

// looped is a definition that loops over steps that say values.
func looped(values []string) string {
	list := []byte("[")
	for i, v := range values {
		if i > 0 {
			list = append(list, ',')
		}
		list = fmt.Appendf(list, `{"type":"call","command":"world/look","value":%q}`, v)
	}
	return fmt.Sprintf(`{"id":"m","name":"m","steps":%s],"loop":{"type":"continuous","intervalMs":1},"safety":{"maxIterations":100000000}}`, list)
}

func valuesOf(t testing.TB, d *sentinels.Definition) []string {
	t.Helper()
	values := []string{}
	for _, s := range d.Steps {
		var v string
		if err := json.Unmarshal(s.Fields["value"], &v); err != nil {
			t.Fatal(err)
		}
		values = append(values, v)
	}
	return values
}

// An editModel is what edits should have come to, by version: the revisions of
// a sentinel, or the edits of a run.
type editModel struct {
	mu      sync.Mutex
	states  map[int][]string  // what the version says
	ops     map[int]editOp    // acknowledged, by the version they made
	acked   map[int]time.Time // when that was known
	pending map[int]editOp    // by editor: sent, without an answer
	refused int
	dead    bool // the process is: what it does or hears any more counts for nothing
}

func newEditModel(first []string) *editModel {
	return &editModel{states: map[int][]string{1: first}, ops: map[int]editOp{}, acked: map[int]time.Time{1: time.Now()}, pending: map[int]editOp{}}
}

// try makes an edit and notes what became of it. Version 0 is an edit that came
// to what was there.
func (m *editModel) try(t testing.TB, editor int, o editOp, edit func() (version int, err error)) {
	m.mu.Lock()
	if m.dead {
		m.mu.Unlock()
		return
	}
	m.pending[editor] = o
	m.mu.Unlock()
	n, err := edit()
	at := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.dead:
		return // it may have been made, without an answer
	case errors.Is(err, errNothing) || err == nil && n == 0:
	case abi.CodeOf(err) == abi.Conflict:
		m.refused++
	case err != nil:
		t.Errorf("%+v: %v", o, err)
	default:
		if was, twice := m.ops[n]; twice || n == 1 {
			t.Errorf("version %d is that of %+v and of %+v", n, was, o)
		}
		m.ops[n], m.acked[n] = o, at
	}
	delete(m.pending, editor)
}

// settle replays the ops on a slice and holds every version to it. A version
// without an answer is that of an edit which the crash interrupted.
func (m *editModel) settle(t testing.TB, newest int, stored func(int) []string) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	for n := range m.acked {
		if n > newest {
			t.Fatalf("version %d was acknowledged, and after the crash there are %d", n, newest)
		}
	}
	for n := 2; n <= newest; n++ {
		if m.states[n] != nil {
			continue
		}
		got := stored(n)
		candidates := m.pending
		if o, ok := m.ops[n]; ok {
			candidates = map[int]editOp{-1: o}
		}
		found := false
		for editor, o := range candidates {
			if want, ok := o.on(m.states[n-1], m.states); ok && slices.Equal(want, got) {
				found = true
				delete(m.pending, editor)
				break
			}
		}
		if !found {
			t.Fatalf("version %d is %q; %q and one of %+v do not give that", n, got, m.states[n-1], candidates)
		}
		m.states[n] = got
	}
	m.pending = map[int]editOp{}
}

// hold holds every iteration to exactly one version, and to the newest one that
// was acknowledged before the iteration began.
func (m *editModel) hold(t testing.TB, what string, its []runtime.TraceIteration, version func(runtime.TraceIteration) int) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, it := range its {
		n := version(it)
		if n == 0 {
			continue
		}
		var said []string
		for _, s := range it.Steps {
			var f struct{ Value string }
			if len(s.Attempts) == 0 {
				continue
			}
			if err := json.Unmarshal(s.Attempts[0].Fields, &f); err != nil {
				t.Fatal(err)
			}
			said = append(said, f.Value)
		}
		want, known := m.states[n]
		if !known {
			t.Errorf("%s: pass %d used version %d, which there is not", what, it.Number, n)
			continue
		}
		if it.Done && !slices.Equal(said, want) || !it.Done && !slices.Equal(said, want[:min(len(said), len(want))]) {
			t.Errorf("%s: iteration %d executed %q; version %d is %q", what, it.Number, said, n, want)
		}
		for later, at := range m.acked {
			if later > n && it.Start.After(at) {
				t.Errorf("%s: pass %d used version %d, and %d was there %s before it began", what, it.Number, n, later, it.Start.Sub(at))
			}
		}
	}
}

func randomOp(rng *rand.Rand, value string, length int) editOp {
	o := editOp{kind: "update", k: rng.IntN(1000), value: value}
	switch n := rng.IntN(10); {
	case n < 5 && length < 12 || length < 2:
		o.kind = "add"
	case n < 7:
		o.kind = "remove"
	}
	return o
}

// An editingLife is one process with its editors.
type editingLife struct {
	rt     *runtime.Runtime
	shared *editModel
	own    *editModel // of the run that is edited alone
	run    sentinels.RunID
	number int
}

// editStored makes random edits of the stored sentinel: of single steps, of the
// whole as a file does, rollbacks, and stale ones.
func (l *editingLife) editStored(t testing.TB, editor, edits int) {
	rng := rand.New(rand.NewPCG(uint64(l.number), uint64(editor)))
	ctx := context.Background()
	for i := range edits {
		value := fmt.Sprintf("%d.%d.%d", l.number, editor, i)
		head, err := l.rt.Definition("m")
		if err != nil {
			return // closed
		}
		def, err := l.rt.Decoded(head)
		if err != nil {
			t.Error(err)
			return
		}
		switch n := rng.IntN(10); {
		case n < 6:
			o := randomOp(rng, value, len(def.Steps))
			l.shared.try(t, editor, o, func() (int, error) {
				s, err := l.rt.Edit(ctx, "m", runtime.SaveOptions{Expect: runtime.AnyRevision}, o.edit)
				return s.Revision, err
			})
		case n < 8:
			o := editOp{kind: "save", values: append(valuesOf(t, def), value)}
			if len(o.values) > 10 {
				o.values = o.values[5:]
			}
			next, problems := l.rt.Decode([]byte(looped(o.values)), "m.json")
			if len(problems) > 0 {
				t.Error(problems)
				return
			}
			l.shared.try(t, editor, o, func() (int, error) {
				s, err := l.rt.SaveWith(ctx, next, runtime.SaveOptions{Expect: head.Revision, Origin: "m.json"})
				return newerThan(head, s), err
			})
		case n < 9 && head.Revision > 2:
			o := editOp{kind: "rollback", to: 1 + rng.IntN(head.Revision-1)}
			l.shared.try(t, editor, o, func() (int, error) {
				s, err := l.rt.Rollback(ctx, "m", o.to, runtime.SaveOptions{Expect: head.Revision})
				return newerThan(head, s), err
			})
		case head.Revision > 1:
			_, err := l.rt.Edit(ctx, "m", runtime.SaveOptions{Expect: head.Revision - 1}, editOp{kind: "add", value: "stale"}.edit)
			if abi.CodeOf(err) != abi.Conflict && !errors.Is(err, store.ErrClosed) {
				t.Errorf("a stale edit: %v", err)
			}
		}
		time.Sleep(time.Duration(rng.IntN(400)) * time.Microsecond)
	}
}

// newerThan is the version of s, 0 if that is the one before.
func newerThan(head, s runtime.Stored) int {
	if s.Revision == head.Revision {
		return 0
	}
	return s.Revision
}

// ownEdit reads an edit of a run's own from its journal.
func ownEdit(t testing.TB, rt *runtime.Runtime, db store.Store, run sentinels.RunID, number int) []string {
	t.Helper()
	var values []string
	err := db.Journal(string(run), 1, func(_ uint64, raw []byte) error {
		rec, err := journal.Decode(raw)
		if err != nil || rec.Signal == nil || rec.Signal.Edit == nil || rec.Signal.Edit.Number != number {
			return err
		}
		def, problems := rt.Decode(rec.Signal.Edit.Definition.JSON, "edit")
		if len(problems) > 0 {
			return problems
		}
		values = valuesOf(t, def)
		return nil
	})
	if err != nil || values == nil {
		t.Fatalf("edit %d of run %s: %v", number, run, err)
	}
	return values
}

// editOwn makes random edits of one run.
func (l *editingLife) editOwn(t testing.TB, editor, edits int) {
	rng := rand.New(rand.NewPCG(uint64(l.number), 99))
	for i := range edits {
		o := randomOp(rng, fmt.Sprintf("own.%d.%d", l.number, i), 5)
		l.own.try(t, editor, o, func() (int, error) {
			e, err := l.rt.EditRun(context.Background(), l.run, runtime.EditRunOptions{}, o.edit)
			return e.Edit + 1, err // the first version is what it started with
		})
		time.Sleep(time.Duration(rng.IntN(800)) * time.Microsecond)
	}
}

// TestEditsAgainstAModel edits a sentinel and one of its runs at random, from
// several goroutines, while runs loop over it and the process is killed again
// and again. What should come of it a slice of values says: no edit that was
// acknowledged is lost, none counts twice, every iteration executes the steps of
// exactly one version, and that is the newest one from before the pass began.
func TestEditsAgainstAModel(t *testing.T) {
	lives, edits := 6, 40
	if testing.Short() {
		lives = 3
	}
	opt := runtime.Options{Limits: runtime.Limits{KeepRevisions: 100_000, KeepIterations: 100_000, KeepBytes: 1 << 40, Crashes: 1000}}
	first := []string{"a", "b"}
	db := store.NewMemory()
	rt := open(t, newFakeHost(), db, opt)
	stored := save(t, rt, looped(first), runtime.SaveOptions{})
	shared, own := newEditModel(first), newEditModel(first)
	follows := startStored(t, rt, stored, runtime.StartOptions{})
	pinned := startStored(t, rt, stored, runtime.StartOptions{Pinned: true})
	alone := startStored(t, rt, stored, runtime.StartOptions{Pinned: true})
	// Start returns once the first record is queued; a kill before it is durable
	// would leave no run.
	for _, id := range []sentinels.RunID{follows, pinned, alone} {
		for begun := false; !begun; time.Sleep(time.Millisecond) {
			if err := db.Journal(string(id), 1, func(uint64, []byte) error { begun = true; return nil }); err != nil {
				t.Fatal(err)
			}
		}
	}
	for life := range lives {
		l := &editingLife{rt: rt, shared: shared, own: own, run: alone, number: life}
		var editors sync.WaitGroup
		for e := range 3 {
			editors.Go(func() { l.editStored(t, e, edits) })
		}
		editors.Go(func() { l.editOwn(t, 0, edits) })
		last := life == lives-1
		if last {
			editors.Wait()
		} else {
			time.Sleep(time.Duration(10+rand.IntN(30)) * time.Millisecond)
		}
		// The disk as a power cut would leave it; what is acknowledged behind it
		// was acknowledged by a process that is not there any more.
		shared.mu.Lock()
		own.mu.Lock()
		snap := db.Snapshot()
		shared.dead, own.dead = true, true
		own.mu.Unlock()
		shared.mu.Unlock()
		rt.Close()
		editors.Wait()
		db = snap
		rt = open(t, newFakeHost(), db, opt)
		head, err := rt.Definition("m")
		if err != nil {
			t.Fatal(err)
		}
		shared.dead, own.dead = false, false // no client edits now
		shared.settle(t, head.Revision, func(n int) []string {
			s, err := rt.Revision("m", n)
			if err != nil {
				t.Fatal(err)
			}
			def, err := rt.Decoded(s)
			if err != nil {
				t.Fatal(err)
			}
			return valuesOf(t, def)
		})
		own.settle(t, status(t, rt, alone).Edit+1, func(n int) []string { return ownEdit(t, rt, db, alone, n-1) })
		for _, id := range []sentinels.RunID{follows, pinned, alone} {
			if err := rt.Resume(within(t), id, runtime.ResumeOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	// The runs make passes with what there is in the end.
	for _, id := range []sentinels.RunID{follows, pinned, alone} {
		n := status(t, rt, id).Iteration
		until(t, "two more passes", func() bool { return status(t, rt, id).Iteration > n+2 })
		if err := rt.Stop(within(t), id); err != nil {
			t.Fatal(err)
		}
	}
	iterations := func(id sentinels.RunID) []runtime.TraceIteration {
		tr, err := rt.Trace(id)
		if err != nil {
			t.Fatal(err)
		}
		return tr.Iterations
	}
	its := iterations(follows)
	shared.hold(t, "the run that follows", its, func(it runtime.TraceIteration) int { return it.Revision })
	own.hold(t, "the run that is edited", iterations(alone), func(it runtime.TraceIteration) int { return it.Edit + 1 })
	for _, it := range iterations(pinned) {
		if it.Revision != 1 || it.Edit != 0 {
			t.Errorf("the pinned run used revision %d in pass %d", it.Revision, it.Number)
		}
	}
	used := map[int]bool{}
	for _, it := range its {
		used[it.Revision] = true
	}
	t.Logf("%d revisions, %d of them used in %d passes; %d edits of the run; %d edits refused", len(shared.states), len(used), len(its), len(own.states)-1, shared.refused)
	if len(shared.states) < 20 || len(used) < 10 || len(own.states) < 10 || shared.refused == 0 {
		t.Error("too little happened")
	}
}
