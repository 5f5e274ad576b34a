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

func transact(t testing.TB, r *runtime.Records, fn func(*runtime.RecordsTx) error) {
	t.Helper()
	if err := r.Update(within(t), fn); err != nil {
		t.Fatal(err)
	}
}

func TestRecordsRevisions(t *testing.T) {
	ctx := within(t)
	r := open(t, newFakeHost(), store.NewMemory(), runtime.Options{}).Records()
	transact(t, r, func(tx *runtime.RecordsTx) error {
		doc, err := tx.Put(ctx, "c", "a", json.RawMessage(`1`), 0)
		if err != nil || doc.Revision != 1 || doc.CreatedAt.IsZero() {
			t.Errorf("new: %+v, %v", doc, err)
		}
		if doc, err = tx.Put(ctx, "c", "a", json.RawMessage(`2`), 1); err != nil || doc.Revision != 2 {
			t.Errorf("second: %+v, %v", doc, err)
		}
		if got, err := tx.Get(ctx, "c", "a"); err != nil || string(got.Data) != "2" {
			t.Errorf("own write: %+v, %v", got, err)
		}
		for _, stale := range []uint64{0, 1, 3} {
			if _, err := tx.Put(ctx, "c", "a", nil, stale); abi.CodeOf(err) != abi.Conflict || !strings.Contains(err.Error(), "current one is 2") {
				t.Errorf("on revision %d: %v, want a conflict that names 2", stale, err)
			}
			if err := tx.Delete(ctx, "c", "a", stale); abi.CodeOf(err) != abi.Conflict {
				t.Errorf("delete on revision %d: %v", stale, err)
			}
		}
		if _, err := tx.Put(ctx, "c", "b", nil, 1); abi.CodeOf(err) != abi.Conflict {
			t.Errorf("a revision of what is not there: %v", err)
		}
		if err := tx.Delete(ctx, "c", "b", sentinels.AnyRevision); abi.CodeOf(err) != abi.NotFound {
			t.Errorf("delete of what is not there: %v", err)
		}
		doc, err = tx.Put(ctx, "c", "a", json.RawMessage(`3`), sentinels.AnyRevision)
		if err != nil || doc.Revision != 3 {
			t.Errorf("any revision: %+v, %v", doc, err)
		}
		return nil
	})
	var dead *runtime.RecordsTx
	failed := errors.New("no")
	err := r.Update(ctx, func(tx *runtime.RecordsTx) error {
		dead = tx
		if err := tx.Delete(ctx, "c", "a", 3); err != nil {
			t.Error(err)
		}
		if _, err := tx.Get(ctx, "c", "a"); abi.CodeOf(err) != abi.NotFound {
			t.Errorf("own delete: %v", err)
		}
		return failed
	})
	if !errors.Is(err, failed) {
		t.Errorf("update: %v", err)
	}
	if _, err := dead.Get(ctx, "c", "a"); err == nil {
		t.Error("a transaction that is over was used")
	}
	transact(t, r, func(tx *runtime.RecordsTx) error {
		got, err := tx.Get(ctx, "c", "a")
		if err != nil || got.Revision != 3 {
			t.Errorf("behind a failed transaction: %+v, %v", got, err)
		}
		return nil
	})
}

// TestRecordsScan reads through three layers: what is committed, what is on its
// way to the disk, and what the transaction itself wrote.
func TestRecordsScan(t *testing.T) {
	ctx := within(t)
	db := store.NewMemory()
	rt := open(t, newFakeHost(), db, runtime.Options{})
	r := rt.Records()
	put := func(tx *runtime.RecordsTx, id, data string) {
		t.Helper()
		if _, err := tx.Put(ctx, "c", id, json.RawMessage(data), sentinels.AnyRevision); err != nil {
			t.Fatal(err)
		}
	}
	transact(t, r, func(tx *runtime.RecordsTx) error {
		for _, id := range []string{"b", "d", "f", "h"} {
			put(tx, id, `"old"`)
		}
		_, err := tx.Put(ctx, "cc", "a", json.RawMessage(`"other"`), 0)
		return err
	})
	db.SetFault(errors.New("the disk does not answer"))
	gone, cancel := context.WithCancel(ctx)
	cancel()
	_ = r.Update(gone, func(tx *runtime.RecordsTx) error {
		put(tx, "a", `"ahead"`)
		put(tx, "d", `"ahead"`)
		return tx.Delete(ctx, "c", "f", sentinels.AnyRevision)
	})
	scan := func(tx *runtime.RecordsTx, after string, reverse bool, most int) []string {
		t.Helper()
		got := []string{}
		err := tx.Scan(ctx, "c", after, reverse, func(d sentinels.Document) bool {
			got = append(got, d.ID+strings.Trim(string(d.Data), `"`))
			return len(got) < most
		})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	_ = r.Update(gone, func(tx *runtime.RecordsTx) error {
		put(tx, "c", `"own"`)
		put(tx, "z", `"own"`)
		put(tx, "h", `"own"`)
		if err := tx.Delete(ctx, "c", "b", sentinels.AnyRevision); err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			after   string
			reverse bool
			most    int
			want    []string
		}{
			{"", false, 9, []string{"aahead", "cown", "dahead", "hown", "zown"}},
			{"", true, 9, []string{"zown", "hown", "dahead", "cown", "aahead"}},
			{"c", false, 9, []string{"dahead", "hown", "zown"}},
			{"d", true, 9, []string{"cown", "aahead"}},
			{"b", false, 9, []string{"cown", "dahead", "hown", "zown"}},
			{"e", true, 2, []string{"dahead", "cown"}},
			{"", false, 1, []string{"aahead"}},
			{"z", false, 9, []string{}},
			{"a", true, 9, []string{}},
		} {
			if diff := cmp.Diff(tt.want, scan(tx, tt.after, tt.reverse, tt.most)); diff != "" {
				t.Errorf("behind %q, reverse %t, at most %d (-want +got):\n%s", tt.after, tt.reverse, tt.most, diff)
			}
		}
		return errors.New("drop it")
	})
	db.SetFault(nil)
	transact(t, r, func(tx *runtime.RecordsTx) error {
		want := []string{"aahead", "bold", "dahead", "hold"}
		if diff := cmp.Diff(want, scan(tx, "", false, 9)); diff != "" {
			t.Errorf("once all is committed (-want +got):\n%s", diff)
		}
		return nil
	})
}

// A command whose effect lies in the store happens exactly once, wherever the
// process dies, without a decision.
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
		transact(t, rt.Records(), func(tx *runtime.RecordsTx) error {
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
	said := func(n int) func(*runtime.RecordsTx) error {
		return func(tx *runtime.RecordsTx) error {
			if _, err := tx.Put(ctx, "notes", "a", json.RawMessage(`1`), sentinels.AnyRevision); err != nil {
				return err
			}
			return tx.Emit(ctx, sentinels.Event{ID: fmt.Sprint("note-", n), Name: "note:written", Source: "user"})
		}
	}
	transact(t, rt.Records(), said(1))
	transact(t, rt.Records(), said(1)) // a repetition
	transact(t, rt.Records(), said(2))
	failed := errors.New("no")
	if err := rt.Records().Update(ctx, func(tx *runtime.RecordsTx) error { return errors.Join(said(3)(tx), failed) }); !errors.Is(err, failed) {
		t.Errorf("a transaction that fails: %v", err)
	}
	far := sentinels.Event{ID: "far", Name: "note:written", Source: "user", Hops: 17, Path: []string{"a", "b"}}
	err := rt.Records().Update(ctx, func(tx *runtime.RecordsTx) error { return tx.Emit(ctx, far) })
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
