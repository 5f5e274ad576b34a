package runtime_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

func prune(t testing.TB, rt *runtime.Runtime, keep runtime.Retention) runtime.Pruned {
	t.Helper()
	out, err := rt.Prune(within(t), keep)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

const large = `{"name":"large","steps":[{"type":"call","command":"world/act","value":"$text","outputTo":"a"}],"loop":{"type":"once"}}`

func startLarge(t testing.TB, rt *runtime.Runtime, text, key string) sentinels.RunID {
	t.Helper()
	value, err := json.Marshal(strings.Repeat(text, 70<<10))
	if err != nil {
		t.Fatal(err)
	}
	id := start(t, rt, large, runtime.StartOptions{Key: key, Variables: map[string]json.RawMessage{"text": value}})
	if res := wait(t, rt, id); res.Status != sentinels.StatusCompleted {
		t.Fatalf("%s: %v", res.Status, res.Error)
	}
	return id
}

// mentions counts in how many pairs and records of the store something stands.
func mentions(t testing.TB, db store.Store, what string) int {
	t.Helper()
	n := 0
	for _, bucket := range runtime.Buckets() {
		if err := db.Scan(bucket, nil, nil, false, func(key, value []byte) bool {
			if bytes.Contains(key, []byte(what)) || bytes.Contains(value, []byte(what)) {
				n++
			}
			return true
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Journal(what, 1, func(uint64, []byte) error { n++; return nil }); err != nil {
		t.Fatal(err)
	}
	return n
}

// Of a run that goes nothing is left, counted exactly: no record, no key, no
// index, and no value that was put aside, while those of others stay.
func TestPruneLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	reopen := func() *runtime.Runtime {
		w := newFakeHost()
		rt, err := runtime.Open(context.Background(), runtime.Options{Dir: dir, Commands: w})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { rt.Close() })
		if err := runtime.AddModule(rt, steps()); err != nil {
			t.Fatal(err)
		}
		return rt
	}
	rt := reopen()
	first := startLarge(t, rt, "x", "key one")
	second := startLarge(t, rt, "y", "key two")
	db := runtime.StoreOf(rt)
	if _, err := db.PutBlob([]byte("left by a process that died")); err != nil {
		t.Fatal(err)
	}
	records, size := 0, int64(0)
	if err := db.Journal(string(first), 1, func(_ uint64, raw []byte) error {
		records++
		size += int64(len(raw))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	rt.Close()

	rt = reopen()
	db = runtime.StoreOf(rt)
	result, _, err := db.Get("results", []byte(first))
	if err != nil {
		t.Fatal(err)
	}
	out := prune(t, rt, runtime.Retention{MaxRuns: 1})
	if out.Runs != 1 || out.Records != records || out.Bytes != size+int64(len(result)) || out.Keys != 1 || out.Kept != 1 || !out.Swept {
		t.Errorf("%+v; want 1 run, %d records, %d bytes, 1 key, 1 kept", out, records, size+int64(len(result)))
	}
	if out.Blobs < 2 || out.BlobBytes < 70<<10 {
		t.Errorf("%d blobs with %d bytes went; want those of the run and the orphan", out.Blobs, out.BlobBytes)
	}
	if n := mentions(t, db, string(first)); n != 0 {
		t.Errorf("the run is mentioned %d times", n)
	}
	if _, err := rt.Status(first); err == nil {
		t.Error("the run is still there")
	}
	res, err := rt.Wait(within(t), second)
	if err != nil || len(res.Variables["a"]) < 70<<10 {
		t.Errorf("the other run: %d bytes, %v", len(res.Variables["a"]), err)
	}
	if _, err := rt.Trace(second); err != nil {
		t.Errorf("trace of the other run: %v", err)
	}
	if again := prune(t, rt, runtime.Retention{MaxRuns: 1}); again.Runs != 0 || again.Swept {
		t.Errorf("again: %+v", again)
	}
	// The key is free again, and the bound in bytes takes the rest.
	third := startLarge(t, rt, "x", "key one")
	if third == first {
		t.Error("the key of a run that is gone gave that run")
	}
	if out := prune(t, rt, runtime.Retention{MaxBytes: 800 << 10}); out.Runs != 1 || status(t, rt, third).ID != third {
		t.Errorf("by bytes: %+v; want the older one gone", out)
	}
}

// What goes on keeps what it may ask for again: children of its own pass, and
// every run above one that goes on. What is taken below it stays counted.
func TestPruneBelowARunThatGoesOn(t *testing.T) {
	const src = `{"name":"top","steps":[
		{"type":"child","definition":{"name":"kid","steps":[{"type":"talk","prompt":"a"}],"loop":{"type":"once"}},"outputTo":"k"},
		{"type":"pause","event":"go"}],"loop":{"type":"count","max":3},"budget":{"calls":3}}`
	db := newRecordingStore()
	rt := open(t, newFakeHost(), db, runtime.Options{})
	top := start(t, rt, src, runtime.StartOptions{})
	pass := func(n int) {
		t.Helper()
		until(t, fmt.Sprint("pass ", n), func() bool {
			kids, err := rt.Runs(runtime.RunFilter{Parent: top})
			return err == nil && db.count(t, hasCall("go")) == n && len(kids) > 0 && !kids[0].Live
		})
	}
	pass(1)
	if out := prune(t, rt, runtime.Retention{MaxAge: 1}); out.Runs != 0 {
		t.Errorf("the first pass goes on: %+v", out)
	}
	emitNamed(t, rt, "go")
	pass(2)
	if out := prune(t, rt, runtime.Retention{MaxAge: 1}); out.Runs != 1 || out.Kept != 2 {
		t.Errorf("the child of the first pass: %+v", out)
	}
	rt.Close()
	rt = open(t, newFakeHost(), db.prefix(t, db.length()), runtime.Options{})
	if _, err := rt.ResumeAll(within(t), runtime.ResumeOptions{}); err != nil {
		t.Fatal(err)
	}
	emitNamed(t, rt, "go")
	until(t, "the third child", func() bool {
		return len(ids(t, rt, runtime.RunFilter{Parent: top, Status: sentinels.StatusCompleted})) == 2
	})
	emitNamed(t, rt, "go")
	res := wait(t, rt, top)
	if res.Status != sentinels.StatusCompleted || res.Usage.Calls != 3 {
		t.Errorf("%s with %d model calls, want completed with 3: %v", res.Status, res.Usage.Calls, res.Error)
	}
	if out := prune(t, rt, runtime.Retention{MaxAge: 1}); out.Runs != 3 || out.Kept != 0 {
		t.Errorf("when all is over: %+v", out)
	}
}

func emitNamed(t testing.TB, rt *runtime.Runtime, name string) {
	t.Helper()
	if _, err := rt.Emit(within(t), sentinels.Event{Name: name}); err != nil {
		t.Fatal(err)
	}
}

// A final run above one that goes on stays.
func TestPruneKeepsWhatIsAboveALivingRun(t *testing.T) {
	db := newRecordingStore()
	rt := open(t, newFakeHost(), db, runtime.Options{})
	id := startFamily(t, rt, db)
	until(t, "the end of the middle run to be durable", func() bool { return !familyRuns(t, rt)["mid"].Live })
	if out := prune(t, rt, runtime.Retention{MaxAge: 1}); out.Runs != 0 || out.Kept != 3 {
		t.Errorf("%+v", out)
	}
	if err := rt.Stop(within(t), id); err != nil {
		t.Fatal(err)
	}
	if out := prune(t, rt, runtime.Retention{MaxAge: 1}); out.Runs != 3 {
		t.Errorf("after the stop: %+v", out)
	}
}

// Pruning beside runs that start and end takes nothing that one of them needs.
func TestPruneBesideRuns(t *testing.T) {
	rt := open(t, newFakeHost(), store.NewMemory(), runtime.WithSweepInterval(runtime.Options{}, 1))
	stop := make(chan struct{})
	var pruner sync.WaitGroup
	pruner.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond): // far less than the interval that is kept
			}
			if _, err := rt.Prune(context.Background(), runtime.Retention{MaxRuns: 2}); err != nil {
				t.Error(err)
				return
			}
		}
	})
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 15 {
				startLarge(t, rt, string(rune('a'+(g*15+i)%20)), fmt.Sprint(g, i))
			}
		})
	}
	wg.Wait()
	close(stop)
	pruner.Wait()
	out := prune(t, rt, runtime.Retention{MaxRuns: 2})
	if out.Kept != 2 {
		t.Errorf("%d runs are left, want 2", out.Kept)
	}
	for _, id := range ids(t, rt, runtime.RunFilter{}) {
		if _, err := rt.Trace(id); err != nil {
			t.Errorf("trace of what is left: %v", err)
		}
	}
}

// A run that can be forked can be pruned then: the fork has all it needs.
func TestForkOutlivesPruning(t *testing.T) {
	rt := open(t, newFakeHost(), store.NewMemory(), runtime.WithSweepInterval(runtime.Options{}, 1))
	value, _ := json.Marshal(strings.Repeat("z", 70<<10))
	src := strings.Replace(large, `],"loop"`, `,{"type":"pause","event":"go"},{"type":"call","command":"world/look","value":"$a.value","outputTo":"b"}],"loop"`, 1)
	db := runtime.StoreOf(rt)
	old := start(t, rt, src, runtime.StartOptions{Variables: map[string]json.RawMessage{"text": value}})
	asked := func(id sentinels.RunID) bool {
		found := false
		_ = db.Journal(string(id), 1, func(_ uint64, raw []byte) error {
			rec, err := journal.Decode(raw)
			found = found || err == nil && hasCall("go")(rec)
			return nil
		})
		return found
	}
	until(t, "the run to wait", func() bool { return asked(old) })
	id := fork(t, rt, old, runtime.ForkOptions{From: "1"})
	if err := rt.Stop(within(t), old); err != nil {
		t.Fatal(err)
	}
	until(t, "the fork to wait", func() bool { return asked(id) })
	for range 3 {
		prune(t, rt, runtime.Retention{MaxAge: 1})
	}
	emitNamed(t, rt, "go")
	res := wait(t, rt, id)
	if res.Status != sentinels.StatusCompleted || len(res.Variables["b"]) < 70<<10 {
		t.Errorf("%s: %v, b has %d bytes", res.Status, res.Error, len(res.Variables["b"]))
	}
}
