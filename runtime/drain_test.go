package runtime_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

const drained = `{"name":"drained","steps":[
	{"type":"call","command":"world/act","value":1},
	{"type":"call","command":"world/act","value":2}],"loop":{"type":"count","max":20}}`

// TestDrainLeavesNothingInDoubt closes a runtime in the middle of effects that
// may not be repeated, and has the next one continue without a decision.
func TestDrainLeavesNothingInDoubt(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	w, inner := newFakeHost(), store.NewMemory()
	t.Cleanup(func() { inner.Close() })
	db := keptOpen{inner}
	w.delay = 3 * time.Millisecond
	rt := open(t, w, db, runtime.Options{OnInterrupt: sentinels.InterruptAsk})
	var ids []sentinels.RunID
	for range 5 {
		id, err := rt.Start(ctx, decode(t, rt, drained), runtime.StartOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	until(t, "effects", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.order) > 5
	})
	if err := rt.Drain(ctx); err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	before := len(w.order)
	w.mu.Unlock()
	if before == 0 || before >= 5*40 {
		t.Fatalf("%d effects before the drain; the test wants it in the middle", before)
	}
	late, err := rt.Start(ctx, decode(t, rt, drained), runtime.StartOptions{})
	if err != nil {
		t.Fatalf("start while draining: %v; a run must be taken in for the next process", err)
	}
	ids = append(ids, late)
	time.Sleep(10 * time.Millisecond)
	if w.mu.Lock(); len(w.order) != before {
		t.Errorf("%d effects after the drain", len(w.order)-before)
	}
	w.mu.Unlock()
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	w = w.next()
	w.delay = 0
	rt = open(t, w, db, runtime.Options{OnInterrupt: sentinels.InterruptAsk})
	for _, id := range ids {
		if err := rt.Resume(ctx, id, runtime.ResumeOptions{}); err != nil {
			t.Fatal(err)
		}
		waited, stop := context.WithTimeout(ctx, 2*time.Minute)
		res, err := rt.Wait(waited, id)
		stop()
		if err != nil || res.Status != sentinels.StatusCompleted {
			info, _ := rt.Status(id)
			t.Fatalf("run %s: %v, %v; it is %s in iteration %d, decisions %v", id, res.Status, err, info.Status, info.Iteration, info.Decisions)
		}
	}
	for key, n := range w.made {
		if n != 1 {
			t.Errorf("effect %s happened %d times", key, n)
		}
	}
	if len(w.order) != 6*40 {
		t.Errorf("%d effects, want %d", len(w.order), 6*40)
	}
}

// TestDrainHasAnEnd says so when a step does not come to its end in time.
func TestDrainHasAnEnd(t *testing.T) {
	w := newFakeHost()
	w.delay = time.Minute
	db := newRecordingStore()
	rt := open(t, w, db, runtime.Options{})
	if _, err := rt.Start(context.Background(), decode(t, rt, drained), runtime.StartOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, "the effect to begin", func() bool { return db.has(t, hasCall("world/act")) }) // else there may be nothing to wait for
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	err := rt.Drain(ctx)
	if err == nil || !strings.Contains(err.Error(), "1 runs still execute") {
		t.Fatalf("drain = %v, want it to say that one run still executes", err)
	}
}

// keptOpen is a store that outlives the runtimes that close it. As a store that
// closes, it commits what waits.
type keptOpen struct{ store.Store }

func (k keptOpen) Close() error {
	return k.Enqueue(store.Batch{Puts: []store.Put{{Bucket: "test", Key: []byte("closed")}}}).Wait(context.Background())
}
