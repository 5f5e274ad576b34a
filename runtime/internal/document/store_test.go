package document_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime/internal/document"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// events is a log that writes each event under its ID, and accepts those without hops.
type events struct{}

var errHops = errors.New("too many hops")

func (events) Accept(_ context.Context, e sentinels.Event) (sentinels.Event, error) {
	if e.Hops > 0 {
		return e, errHops
	}
	return e, nil
}

func (events) AppendAll(all []sentinels.Event, commit func(puts ...store.Put) *store.Ticket) error {
	var puts []store.Put
	for _, e := range all {
		value, err := json.Marshal(e)
		if err != nil {
			return err
		}
		puts = append(puts, store.Put{Bucket: "events", Key: []byte(e.ID), Value: value})
	}
	commit(puts...)
	return nil
}

func open(db store.Store) *document.Store {
	return document.New(document.Options{
		Store: db, Events: events{}, Writable: func() error { return nil },
		Await: func(ctx context.Context, ticket *store.Ticket) error { return ticket.Wait(ctx) },
	})
}

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func transact(t testing.TB, s *document.Store, fn func(*document.Tx) error) {
	t.Helper()
	if err := s.Update(within(t), fn); err != nil {
		t.Fatal(err)
	}
}

func TestRevisions(t *testing.T) {
	ctx := within(t)
	s := open(store.NewMemory())
	transact(t, s, func(tx *document.Tx) error {
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
			if _, err := tx.Put(ctx, "c", "a", nil, stale); abi.CodeOf(err) != abi.Conflict ||
				err.Error() != fmt.Sprintf(`document "a" of "c": revision conflict: have %d, current is 2`, stale) {
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
	var dead *document.Tx
	failed := errors.New("no")
	err := s.Update(ctx, func(tx *document.Tx) error {
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
	transact(t, s, func(tx *document.Tx) error {
		got, err := tx.Get(ctx, "c", "a")
		if err != nil || got.Revision != 3 {
			t.Errorf("after a failed transaction: %+v, %v", got, err)
		}
		return nil
	})
}

// TestScan reads through three layers: documents that are committed, writes on their
// way to the disk, and those of the transaction itself.
func TestScan(t *testing.T) {
	ctx := within(t)
	db := store.NewMemory()
	s := open(db)
	put := func(tx *document.Tx, id, data string) {
		t.Helper()
		if _, err := tx.Put(ctx, "c", id, json.RawMessage(data), sentinels.AnyRevision); err != nil {
			t.Fatal(err)
		}
	}
	transact(t, s, func(tx *document.Tx) error {
		for _, id := range []string{"b", "d", "f", "h"} {
			put(tx, id, `"old"`)
		}
		_, err := tx.Put(ctx, "cc", "a", json.RawMessage(`"other"`), 0)
		return err
	})
	db.SetFault(errors.New("the disk does not answer"))
	gone, cancel := context.WithCancel(ctx)
	_ = s.Update(gone, func(tx *document.Tx) error {
		cancel() // no wait for the commit
		put(tx, "a", `"ahead"`)
		put(tx, "d", `"ahead"`)
		return tx.Delete(ctx, "c", "f", sentinels.AnyRevision)
	})
	scan := func(tx *document.Tx, after string, reverse bool, most int) []string {
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
	_ = s.Update(ctx, func(tx *document.Tx) error {
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
				t.Errorf("after %q, reverse %t, at most %d (-want +got):\n%s", tt.after, tt.reverse, tt.most, diff)
			}
		}
		return errors.New("drop it")
	})
	db.SetFault(nil)
	transact(t, s, func(tx *document.Tx) error {
		want := []string{"aahead", "bold", "dahead", "hold"}
		if diff := cmp.Diff(want, scan(tx, "", false, 9)); diff != "" {
			t.Errorf("once all is committed (-want +got):\n%s", diff)
		}
		return nil
	})
}

// The writes of a transaction and its events go into one commit, of the store or of a
// caller; a transaction that fails has none.
func TestCommitHasWritesAndEvents(t *testing.T) {
	ctx := within(t)
	db := store.NewMemory()
	s := open(db)
	fill := func(id string) func(*document.Tx) error {
		return func(tx *document.Tx) error {
			_, err := tx.Put(ctx, "c", id, json.RawMessage(`1`), 0)
			return errors.Join(err, tx.Emit(ctx, sentinels.Event{ID: "e" + id, Name: "written"}))
		}
	}
	transact(t, s, fill("a"))
	var batches [][]string
	var last *store.Ticket
	commit := func(puts []store.Put) *store.Ticket {
		keys := []string{}
		for _, p := range puts {
			keys = append(keys, p.Bucket+" "+string(p.Key))
		}
		batches = append(batches, keys)
		last = db.Enqueue(store.Batch{Puts: puts})
		return last
	}
	if err := s.Transact(ctx, fill("b"), commit); err != nil {
		t.Error(err)
	}
	if err := s.Transact(ctx, func(*document.Tx) error { return nil }, commit); err != nil {
		t.Error(err)
	}
	if err := s.Transact(ctx, fill("b"), commit); abi.CodeOf(err) != abi.Conflict {
		t.Errorf("a document that exists: %v, want a conflict", err)
	}
	far := func(tx *document.Tx) error { return tx.Emit(ctx, sentinels.Event{ID: "x", Name: "far", Hops: 1}) }
	if err := s.Transact(ctx, far, commit); !errors.Is(err, errHops) {
		t.Errorf("an event that the log refuses: %v", err)
	}
	for _, e := range []sentinels.Event{{ID: "x"}, {Name: "x"}} {
		if err := s.Update(ctx, func(tx *document.Tx) error { return tx.Emit(ctx, e) }); abi.CodeOf(err) != abi.Internal {
			t.Errorf("%+v: %v, want an internal error", e, err)
		}
	}
	if diff := cmp.Diff([][]string{{"documents c\x00b", "events eb"}, {}}, batches); diff != "" {
		t.Errorf("commits (-want +got):\n%s", diff)
	}
	if err := last.Wait(ctx); err != nil {
		t.Error(err)
	}
	if stats := db.Stats(); stats.Puts != 4 {
		t.Errorf("%d writes in the store, want 4", stats.Puts)
	}
}

// A transaction that only reads succeeds while the engine accepts nothing new.
func TestReadOnly(t *testing.T) {
	ctx := within(t)
	readOnly := errors.New("read-only")
	s := document.New(document.Options{Store: store.NewMemory(), Events: events{}, Writable: func() error { return readOnly }})
	transact(t, s, func(tx *document.Tx) error {
		if _, err := tx.Get(ctx, "c", "a"); abi.CodeOf(err) != abi.NotFound {
			t.Errorf("get: %v", err)
		}
		return nil
	})
	err := s.Update(ctx, func(tx *document.Tx) error {
		_, err := tx.Put(ctx, "c", "a", json.RawMessage(`1`), 0)
		return err
	})
	if !errors.Is(err, readOnly) {
		t.Errorf("put: %v, want %v", err, readOnly)
	}
}

// TestViewBesideUpdate: transactions that only read do not wait for one that may write, and see what
// was committed before it.
func TestViewBesideUpdate(t *testing.T) {
	ctx := within(t)
	s := open(store.NewMemory())
	put := func(tx *document.Tx, data string) error {
		_, err := tx.Put(ctx, "c", "a", json.RawMessage(data), sentinels.AnyRevision)
		return err
	}
	transact(t, s, func(tx *document.Tx) error { return put(tx, `1`) })
	transact(t, s, func(tx *document.Tx) error {
		if err := put(tx, `2`); err != nil {
			return err
		}
		return s.View(ctx, func(view *document.Tx) error {
			if got, err := view.Get(ctx, "c", "a"); err != nil || string(got.Data) != "1" {
				t.Errorf("beside an open transaction: %s, %v", got.Data, err)
			}
			for _, err := range []error{put(view, `3`), view.Delete(ctx, "c", "a", 1), view.Emit(ctx, sentinels.Event{ID: "e", Name: "e"})} {
				if err == nil {
					t.Error("a transaction that only reads wrote")
				}
			}
			return nil
		})
	})
}

// TestScanEnds: a scan ends with its context, and reports when it has read what it should.
func TestScanEnds(t *testing.T) {
	s := open(store.NewMemory())
	x := &document.Index{Collection: "c", Name: "id", Version: 1, Values: func(d sentinels.Document) [][]any { return [][]any{{d.ID}} }}
	if err := s.Register(within(t), x); err != nil {
		t.Fatal(err)
	}
	transact(t, s, func(tx *document.Tx) error {
		for _, id := range []string{"a", "b", "c", "d"} {
			if _, err := tx.Put(t.Context(), "c", id, json.RawMessage(`"`+strings.Repeat("x", 1000)+`"`), 0); err != nil {
				return err
			}
		}
		return nil
	})
	for name, scan := range map[string]func(ctx context.Context, tx *document.Tx, fn func(sentinels.Document) bool) error{
		"Scan": func(ctx context.Context, tx *document.Tx, fn func(sentinels.Document) bool) error {
			return tx.Scan(ctx, "c", "", false, fn)
		},
		"ScanIndex": func(ctx context.Context, tx *document.Tx, fn func(sentinels.Document) bool) error {
			return tx.ScanIndex(ctx, x, document.Range{}, func(_ string, d sentinels.Document) bool { return fn(d) })
		},
	} {
		err := s.View(within(t), func(tx *document.Tx) error {
			tx.BoundReads(2000)
			got := ""
			err := scan(t.Context(), tx, func(d sentinels.Document) bool {
				got += fmt.Sprint(d.ID, tx.ReadEnough(), " ")
				return true
			})
			if want := "afalse bfalse ctrue dtrue "; got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
			return err
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		left := errors.New("the caller left")
		ctx, cancel := context.WithCancelCause(within(t))
		n := 0
		err = s.View(ctx, func(tx *document.Tx) error {
			return scan(ctx, tx, func(sentinels.Document) bool {
				n++
				cancel(left)
				return true
			})
		})
		if n != 1 || !errors.Is(err, left) {
			t.Errorf("%s whose caller left: %d documents, %v", name, n, err)
		}
	}
}

// TestWritersTakeTurns: a person's transaction waits for one of an agent, not for all that the agent
// asked for before, and no longer than its caller.
func TestWritersTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := store.NewMemory()
		defer db.Close()
		s := open(db)
		var got []string
		hold := make(chan struct{})
		begin := func(ctx context.Context, name string) {
			go func() {
				err := s.Update(ctx, func(*document.Tx) error {
					got = append(got, name)
					<-hold
					return nil
				})
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			}()
			synctest.Wait()
		}
		agent := document.WithOwner(t.Context(), "agent:a")
		for _, name := range []string{"a1", "a2", "a3", "a4"} {
			begin(agent, name)
		}
		ended, cancel := context.WithCancel(t.Context())
		begin(ended, "left")
		cancel()
		begin(t.Context(), "person")
		close(hold)
		synctest.Wait()
		if want := []string{"a1", "person", "a2", "a3", "a4"}; !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	})
}
