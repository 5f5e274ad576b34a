package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

func transact(t testing.TB, r *runtime.Documents, fn func(*runtime.DocumentTx) error) {
	t.Helper()
	if err := r.Update(within(t), fn); err != nil {
		t.Fatal(err)
	}
}

// A command whose effect lies in the store happens exactly once, wherever the
// process dies, and is never in doubt.
func TestStoreCommandHappensOnce(t *testing.T) {
	const src = `{"name":"n","steps":[
		{"type":"times","count":4,"steps":[{"type":"call","command":"world/note","value":"$index","outputTo":"a"}]}],"loop":{"type":"count","max":2}}`
	f := newRecordingStore()
	rt := open(t, newFakeHost(), f, runtime.Options{})
	id := start(t, rt, src, runtime.StartOptions{})
	wait(t, rt, id)
	rt.Close()
	for n := f.after(t, 1, kind(journal.RunStart)); n < f.length(); n++ {
		rt := open(t, newFakeHost(), f.prefix(t, n), runtime.Options{})
		if !status(t, rt, id).Status.Final() {
			if err := rt.Resume(within(t), id, runtime.ResumeOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if res := wait(t, rt, id); res.Status != sentinels.StatusCompleted {
			t.Errorf("crash behind batch %d: %s, %v", n, res.Status, res.Error)
		}
		transact(t, rt.Documents(), func(tx *runtime.DocumentTx) error {
			count := 0
			err := tx.Scan(context.Background(), "notes", "", false, func(d sentinels.Document) bool {
				if count++; d.Revision != 1 {
					t.Errorf("crash behind batch %d: note %s was written %d times", n, d.ID, d.Revision)
				}
				return true
			})
			if count != 8 {
				t.Errorf("crash behind batch %d: %d notes, want 8", n, count)
			}
			return err
		})
		rt.Close()
	}
}

// TestEventsOfATransaction are in the log with its writes, once, and not at all
// when it fails.
func TestEventsOfATransaction(t *testing.T) {
	rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{})
	ctx := t.Context()
	said := func(n int) func(*runtime.DocumentTx) error {
		return func(tx *runtime.DocumentTx) error {
			if _, err := tx.Put(ctx, "notes", "a", json.RawMessage(`1`), sentinels.AnyRevision); err != nil {
				return err
			}
			return tx.Emit(ctx, sentinels.Event{ID: fmt.Sprint("note-", n), Name: "note:written", Source: "user"})
		}
	}
	transact(t, rt.Documents(), said(1))
	transact(t, rt.Documents(), said(1)) // a repetition
	transact(t, rt.Documents(), said(2))
	failed := errors.New("no")
	if err := rt.Documents().Update(ctx, func(tx *runtime.DocumentTx) error { return errors.Join(said(3)(tx), failed) }); !errors.Is(err, failed) {
		t.Errorf("a transaction that fails: %v", err)
	}
	far := sentinels.Event{ID: "far", Name: "note:written", Source: "user", Hops: 17, Path: []string{"a", "b"}}
	err := rt.Documents().Update(ctx, func(tx *runtime.DocumentTx) error { return tx.Emit(ctx, far) })
	if abi.CodeOf(err) != abi.Limit || !strings.Contains(err.Error(), "a -> b") {
		t.Errorf("a chain that is too long: %v, want the limit and the way", err)
	}
	events, err := rt.Events("note:*", 10)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, e := range events {
		ids = append(ids, e.ID)
	}
	if diff := cmp.Diff([]string{"note-1", "note-2"}, ids); diff != "" {
		t.Error(diff)
	}
}
