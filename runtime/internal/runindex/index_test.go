package runindex_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sentinel-runtime/sentinel/runtime/internal/runindex"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

const summaries = "runs"

// engine has the runs that the index asks for.
type engine struct {
	db       *store.Memory
	active   map[sentinels.RunID]run.Info
	starting []run.Info
}

func (e *engine) index(t testing.TB) *runindex.Index {
	t.Helper()
	x := runindex.New(runindex.Options{
		Store: e.db, Summaries: summaries,
		Active:   func(id sentinels.RunID) (run.Info, bool) { info, ok := e.active[id]; return info, ok },
		Starting: func() []run.Info { return slices.Clone(e.starting) },
	})
	if err := x.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	return x
}

func (e *engine) commit(t testing.TB, puts ...store.Put) {
	t.Helper()
	if err := e.db.Enqueue(store.Batch{Puts: puts}).Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func summary(t testing.TB, info run.Info) store.Put {
	t.Helper()
	value, err := json.Marshal(info)
	if err != nil {
		t.Fatal(err)
	}
	return store.Put{Bucket: summaries, Key: []byte(info.ID), Value: value}
}

func newRun(status sentinels.Status) run.Info {
	return run.Info{ID: sentinels.RunID(uuid.Must(uuid.NewV7()).String()), Sentinel: "s", Status: status, CreatedAt: time.Now()}
}

func ids(list []run.Info) (out []sentinels.RunID) {
	for _, info := range list {
		out = append(out, info.ID)
	}
	return out
}

// A run whose start is not durable is between those of the store, a live run is as the
// engine has it, and a summary that cannot be read is the error beside the others.
func TestListMergesStoreAndEngine(t *testing.T) {
	stored, fresh, live := newRun(sentinels.StatusCompleted), newRun(sentinels.StatusRunning), newRun(sentinels.StatusRunning)
	e := &engine{db: store.NewMemory(), starting: []run.Info{fresh}}
	x := e.index(t)
	for _, info := range []run.Info{stored, live} {
		e.commit(t, append(x.StartPuts(info), summary(t, info))...)
	}
	paused := live
	paused.Status = sentinels.StatusPaused
	e.active = map[sentinels.RunID]run.Info{live.ID: paused}
	list, err := x.List(run.Filter{})
	if err != nil || !slices.Equal(ids(list), []sentinels.RunID{live.ID, fresh.ID, stored.ID}) || list[0].Status != sentinels.StatusPaused {
		t.Errorf("%+v, %v", list, err)
	}
	if list, err := x.List(run.Filter{Status: sentinels.StatusPaused}); err != nil || len(list) != 1 {
		t.Errorf("paused: %+v, %v", list, err)
	}
	broken := newRun(sentinels.StatusFailed)
	e.commit(t, store.Put{Bucket: summaries, Key: []byte(broken.ID), Value: []byte("{")})
	list, err = x.List(run.Filter{})
	if len(list) != 3 || err == nil || !strings.Contains(err.Error(), string(broken.ID)) {
		t.Errorf("%d runs, %v: want three and an error that names the broken one", len(list), err)
	}
	if _, found, err := x.Stored(broken.ID); !found || err == nil {
		t.Errorf("found %t, %v: want a run that cannot be read", found, err)
	}
}

// An index that is built over old summaries has what one has that grew with them, also
// behind an end and a removal.
func TestOpenIndexesWhatIsThere(t *testing.T) {
	e := &engine{db: store.NewMemory()}
	x := e.index(t)
	var open, all []run.Info
	for i := range 6 {
		info := newRun(sentinels.StatusRunning)
		info.Parent = sentinels.RunID(fmt.Sprint(i % 2))
		e.commit(t, append(x.StartPuts(info), summary(t, info))...)
		all = append([]run.Info{info}, all...)
		switch i {
		case 2:
			info.Status = sentinels.StatusFailed
			e.commit(t, runindex.EndPut(info.ID), summary(t, info))
		case 3:
			e.commit(t, append(runindex.ForgetPuts(info), store.Put{Bucket: summaries, Key: []byte(info.ID), Delete: true})...)
			all = all[1:]
		default:
			open = append([]run.Info{info}, open...)
		}
	}
	without := &engine{db: store.NewMemory()}
	for _, info := range all {
		if info, found, err := x.Stored(info.ID); err != nil || !found {
			t.Fatal(found, err)
		} else {
			without.commit(t, summary(t, info))
		}
	}
	for name, x := range map[string]*runindex.Index{"grown": x, "opened again": e.index(t), "built": without.index(t)} {
		var unfinished []sentinels.RunID
		if err := x.Unfinished(func(id sentinels.RunID) bool {
			unfinished = append(unfinished, id)
			return true
		}); err != nil || !slices.Equal(unfinished, ids(open)) {
			t.Errorf("%s: unfinished %v, %v; want %v", name, unfinished, err, ids(open))
		}
		if list, err := x.List(run.Filter{Sentinel: "s"}); err != nil || !slices.Equal(ids(list), ids(all)) {
			t.Errorf("%s: %v, %v; want %v", name, ids(list), err, ids(all))
		}
		if list, err := x.List(run.Filter{Parent: "1"}); err != nil || len(list) != 2 {
			t.Errorf("%s: children %v, %v; want two", name, ids(list), err)
		}
		if got, err := x.Totals("s"); err != nil || got.Runs != 5 || got.Over != 1 || got.Newest != all[0].ID || got.Status != sentinels.StatusRunning {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// Totals follow what is reported: a run that began, its end twice, and the removal of
// the newest one, whose place the one before takes.
func TestTotalsFollowReports(t *testing.T) {
	e := &engine{db: store.NewMemory()}
	x := e.index(t)
	if got, err := x.Totals("s"); err != nil || got != (run.Totals{}) {
		t.Fatalf("%+v, %v", got, err)
	}
	var list []run.Info
	for i := range 2 {
		info := newRun(sentinels.StatusRunning)
		e.commit(t, append(x.StartPuts(info), summary(t, info))...)
		x.Began(info)
		info.Status, info.Elapsed = sentinels.StatusCompleted, int64(10+i)
		e.commit(t, runindex.EndPut(info.ID), summary(t, info))
		x.Ended(info)
		x.Ended(info)
		list = append(list, info)
	}
	if got, err := x.Totals("s"); err != nil || got.Runs != 2 || got.Over != 2 || got.Elapsed != 21*time.Millisecond || got.Newest != list[1].ID {
		t.Errorf("%+v, %v", got, err)
	}
	e.commit(t, append(runindex.ForgetPuts(list[1]), store.Put{Bucket: summaries, Key: []byte(list[1].ID), Delete: true})...)
	x.Forget("s", list[1].ID)
	if got, err := x.Totals("s"); err != nil || got.Runs != 1 || got.Newest != list[0].ID || got.Status != "" {
		t.Errorf("%+v, %v: want the first alone", got, err)
	}
}

// TestHeldFollowsReports: what an agent's unfinished runs are follows reports, also those that come twice, and is what
// another process finds in the store.
func TestHeldFollowsReports(t *testing.T) {
	e := &engine{db: store.NewMemory()}
	x := e.index(t)
	held := func(when string, want runindex.Held) {
		t.Helper()
		for name, x := range map[string]*runindex.Index{"reports": x, "the store": e.index(t)} {
			if got := x.HeldBy("agent:ci"); got != want {
				t.Errorf("%s, by %s: %+v, want %+v", when, name, got, want)
			}
		}
		if got := x.HeldBy("agent:other"); got != (runindex.Held{}) {
			t.Errorf("%s: another agent has %+v", when, got)
		}
	}
	begin := func(by string, bytes int64) run.Info {
		info := newRun(sentinels.StatusRunning)
		info.By, info.StartBytes = by, bytes
		e.commit(t, append(x.StartPuts(info), summary(t, info))...)
		x.Began(info)
		x.Began(info)
		return info
	}
	before := begin("agent:ci", 5) // before anyone asks
	held("before the first request", runindex.Held{Runs: 1, StartBytes: 5})
	one, two := begin("agent:ci", 10), begin("agent:ci", 20)
	begin("", 40) // of a person
	held("three runs", runindex.Held{Runs: 3, StartBytes: 35})
	for _, info := range []run.Info{before, one} {
		info.Status = sentinels.StatusCompleted
		e.commit(t, runindex.EndPut(info.ID), summary(t, info))
		x.Ended(info)
		x.Ended(info)
	}
	held("two ended", runindex.Held{Runs: 1, StartBytes: 20})
	e.commit(t, append(runindex.ForgetPuts(two), store.Put{Bucket: summaries, Key: []byte(two.ID), Delete: true})...)
	x.Forget("s", two.ID)
	held("one was refused", runindex.Held{})
}

// BenchmarkHeldBy is what the start of an agent's run costs beside 500 unfinished runs.
func BenchmarkHeldBy(b *testing.B) {
	e := &engine{db: store.NewMemory()}
	x := e.index(b)
	for range 500 {
		info := newRun(sentinels.StatusRunning)
		info.By = "agent:ci"
		e.commit(b, append(x.StartPuts(info), summary(b, info))...)
	}
	for b.Loop() {
		if x.HeldBy("agent:ci").Runs != 500 {
			b.Fatal("want 500 runs")
		}
	}
}

// TestTotalsOfTheStoredSentinel: runs of an agent's own definition do not count for the stored sentinel with its id,
// by reports and by what the store says.
func TestTotalsOfTheStoredSentinel(t *testing.T) {
	e := &engine{db: store.NewMemory()}
	x := e.index(t)
	if _, err := x.Totals("s"); err != nil {
		t.Fatal(err)
	}
	stored, own := newRun(sentinels.StatusRunning), newRun(sentinels.StatusRunning)
	stored.By, stored.Revision, own.By = "agent:ci", 1, "agent:ci"
	for _, info := range []run.Info{stored, own} {
		e.commit(t, append(x.StartPuts(info), summary(t, info))...)
		x.Began(info)
	}
	for name, x := range map[string]*runindex.Index{"reports": x, "the store": e.index(t)} {
		if got, err := x.Totals("s"); err != nil || got.Runs != 1 || got.Newest != stored.ID {
			t.Errorf("by %s: %+v, %v", name, got, err)
		}
		if list, err := x.List(run.Filter{Sentinel: "s", OfStored: true}); err != nil || !slices.Equal(ids(list), []sentinels.RunID{stored.ID}) {
			t.Errorf("by %s: %v, %v", name, ids(list), err)
		}
	}
}
