package definition_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime/internal/definition"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/revision"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

var types = func() *sentinels.TypeSet {
	set, err := sentinels.NewTypeSet([]sentinels.TypeSpec{{
		Type: "call", Plugin: "test", Fields: json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{"command":{"type":"string"},"value":{}}}`),
	}})
	if err != nil {
		panic(err)
	}
	return set
}()

func decodeOptions(file string) sentinels.DecodeOptions {
	return sentinels.DecodeOptions{File: file, Types: types}
}

// open makes a store of definitions with steps of the type call. The zero values of
// opt are replaced by defaults.
func open(t testing.TB, opt definition.Options) *definition.Store {
	t.Helper()
	if opt.Store == nil {
		opt.Store = store.NewMemory()
	}
	if opt.Keep == 0 {
		opt.Keep = 50
	}
	if opt.Writable == nil {
		opt.Writable = func() error { return nil }
	}
	if opt.Saved == nil {
		opt.Saved = func(context.Context, sentinels.ID) error { return nil }
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Await == nil {
		opt.Await = func(ctx context.Context, ticket *store.Ticket) error { return ticket.Wait(ctx) }
	}
	opt.Chain = func(sentinels.RunID) (int, []string) { return 0, nil }
	opt.DecodeOptions, opt.Context = decodeOptions, context.Background()
	opt.Inspect = func(_ context.Context, src []byte, file string) (*sentinels.Definition, sentinels.Problems) {
		r := sentinels.Inspect(src, decodeOptions(file))
		return r.Definition, r.Problems
	}
	return definition.New(opt)
}

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func decode(t testing.TB, src string) *sentinels.Definition {
	t.Helper()
	def, problems := sentinels.Decode([]byte(src), decodeOptions("test.json"))
	if len(problems) > 0 {
		t.Fatalf("decode: %v", problems)
	}
	return def
}

// plain is a definition with the id "d" and one step with a value.
func plain(value string) string {
	return `{"id":"d","name":"The d","steps":[{"type":"call","command":"do","value":"` + value + `"}]}`
}

func save(t testing.TB, s *definition.Store, src string, opt revision.SaveOptions) revision.Stored {
	t.Helper()
	r, err := s.Save(within(t), decode(t, src), opt)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A recorder is a follower.
type recorder struct {
	mu   sync.Mutex
	list []string
}

func (r *recorder) add(s revision.Stored) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, fmt.Sprintf("%s@%d deleted=%t", s.ID, s.Revision, s.Deleted))
}

// wait returns the first n revisions.
func (r *recorder) wait(t *testing.T, n int) []string {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(200 * time.Microsecond) {
		r.mu.Lock()
		list := r.list
		r.mu.Unlock()
		if len(list) >= n {
			return list
		}
		if time.Now().After(deadline) {
			t.Fatalf("followers got %v after 2 minutes, want %d revisions", list, n)
		}
	}
}

// appendStep is an edit: one more step with a value.
func appendStep(value string) func(*sentinels.Definition) (*sentinels.Definition, error) {
	return func(d *sentinels.Definition) (*sentinels.Definition, error) {
		return d.InsertStep(fmt.Sprint(len(d.Steps)), sentinels.Step{Type: "call", Fields: map[string]json.RawMessage{
			"command": json.RawMessage(`"world/act"`), "value": json.RawMessage(`"` + value + `"`)}})
	}
}

// Only the newest revisions are kept.
func TestKeptRevisions(t *testing.T) {
	s := open(t, definition.Options{Keep: 3})
	for i := range 6 {
		save(t, s, plain(fmt.Sprint(i)), revision.SaveOptions{Expect: revision.Any})
	}
	kept, err := s.Revisions("d")
	if err != nil || len(kept) != 3 || kept[0].Revision != 6 || kept[2].Revision != 4 {
		t.Errorf("kept %+v, %v", kept, err)
	}
}

// A note may have any text: the definition after it is found nevertheless.
func TestNoteLooksLikeADefinition(t *testing.T) {
	db := store.NewMemory()
	s := open(t, definition.Options{Store: db})
	note := `,"definition":{"x":1}}` + "\n<&>\u2028 \\\","
	want := save(t, s, plain("a"), revision.SaveOptions{Note: note, By: `","definition":`})
	got, err := s.Get("d")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Concurrent edits are all kept, each made on the result of the one before.
func TestConcurrentEdits(t *testing.T) {
	s := open(t, definition.Options{})
	save(t, s, plain("a"), revision.SaveOptions{})
	const writers, each = 4, 8
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range each {
				if _, err := s.Edit(context.Background(), "d", revision.SaveOptions{Expect: revision.Any, By: fmt.Sprint(w)}, appendStep(fmt.Sprint(w, "-", i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	head, err := s.Get("d")
	if err != nil || head.Revision != 1+writers*each {
		t.Fatalf("revision %d, %v", head.Revision, err)
	}
	def, err := s.Decoded(head)
	if err != nil || len(def.Steps) != 1+writers*each {
		t.Errorf("%d steps, %v", len(def.Steps), err)
	}
}

// Followers get every revision once it is durable, tombstones included and moved files
// left out, in the order of the commits; Saved is called for each commit, and its error
// is none of the caller's.
func TestFollowers(t *testing.T) {
	var saved []sentinels.ID
	var log strings.Builder
	s := open(t, definition.Options{
		Saved: func(ctx context.Context, id sentinels.ID) error {
			saved = append(saved, id)
			return errors.Join(ctx.Err(), errors.New("cannot arm"))
		},
		Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	var one, two recorder
	s.Follow(one.add)
	save(t, s, plain("a"), revision.SaveOptions{})
	one.wait(t, 1) // followers hear of a commit beside the caller that waits for it
	s.Follow(two.add)
	save(t, s, plain("a"), revision.SaveOptions{Expect: 1, Origin: "d.json"})
	save(t, s, plain("b"), revision.SaveOptions{Expect: 1})
	if _, err := s.Delete(within(t), "d", revision.SaveOptions{Expect: 2}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Rollback(within(t), "d", 1, revision.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	want := []string{"d@1 deleted=false", "d@2 deleted=false", "d@3 deleted=true", "d@4 deleted=false"}
	if diff := cmp.Diff(want, one.wait(t, 4)); diff != "" {
		t.Errorf("first follower (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want[1:], two.wait(t, 3)); diff != "" {
		t.Errorf("second follower (-want +got):\n%s", diff)
	}
	if n := strings.Count(log.String(), `error="cannot arm"`); len(saved) != 5 || n != 5 {
		t.Errorf("Saved was called for %v, %d errors in the log, want 5", saved, n)
	}
}

// An edit that expects a revision is a conflict when another one was committed since it
// read the head, and the error is that of an edit which was stale from the beginning.
func TestStaleInCommit(t *testing.T) {
	db := &interrupted{Memory: store.NewMemory()}
	s := open(t, definition.Options{Store: db})
	save(t, s, plain("a"), revision.SaveOptions{})
	between := func() { save(t, s, plain("b"), revision.SaveOptions{Expect: revision.Any}) }
	for op, edit := range map[string]func(expect int) error{
		"save": func(expect int) error {
			_, err := s.Save(within(t), decode(t, plain("c")), revision.SaveOptions{Expect: expect})
			return err
		},
		"delete": func(expect int) error {
			_, err := s.Delete(within(t), "d", revision.SaveOptions{Expect: expect})
			return err
		},
		"import": func(expect int) error {
			_, err := s.Import(within(t), []revision.Incoming{{Definition: decode(t, plain("c")), Expect: expect}}, revision.SaveOptions{})
			return err
		},
	} {
		save(t, s, plain("a"), revision.SaveOptions{Expect: revision.Any})
		head, err := s.Head("d")
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("%s definition \"d\": revision conflict: have %d, current is %d", op, head.Revision, head.Revision+1)
		db.before(between)
		if e := abi.As(edit(head.Revision)); e == nil || e.Code != abi.Conflict || e.Message != want || e.Hint == "" {
			t.Errorf("%s: %v, want %s", op, e, want)
		}
		// Without a revision the edit is repeated; an import is not.
		save(t, s, plain("a"), revision.SaveOptions{Expect: revision.Any})
		db.before(between)
		if err := edit(revision.Any); (abi.CodeOf(err) == abi.Conflict) != (op == "import") {
			t.Errorf("%s of any revision: %v", op, err)
		}
	}
}

// interrupted is a store in which something happens before a batch is enqueued.
type interrupted struct {
	*store.Memory
	mu   sync.Mutex
	next func()
}

func (i *interrupted) before(fn func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.next = fn
}

func (i *interrupted) Enqueue(b store.Batch) *store.Ticket {
	i.mu.Lock()
	next := i.next
	i.next = nil
	i.mu.Unlock()
	if next != nil {
		next()
	}
	return i.Memory.Enqueue(b)
}

// Nothing is saved while the engine is read-only, and definitions can be read.
func TestReadOnly(t *testing.T) {
	var readOnly error
	s := open(t, definition.Options{Writable: func() error { return readOnly }})
	save(t, s, plain("a"), revision.SaveOptions{})
	readOnly = errors.New("read-only")
	ctx := within(t)
	def := decode(t, plain("b"))
	for op, edit := range map[string]func() error{
		"save":     func() error { _, err := s.Save(ctx, def, revision.SaveOptions{Expect: 1}); return err },
		"delete":   func() error { _, err := s.Delete(ctx, "d", revision.SaveOptions{Expect: 1}); return err },
		"edit":     func() error { _, err := s.Edit(ctx, "d", revision.SaveOptions{}, appendStep("c")); return err },
		"rollback": func() error { _, err := s.Rollback(ctx, "d", 1, revision.SaveOptions{Expect: 1}); return err },
		"import": func() error {
			_, err := s.Import(ctx, []revision.Incoming{{Definition: def, Expect: 1}}, revision.SaveOptions{})
			return err
		},
	} {
		if err := edit(); !errors.Is(err, readOnly) {
			t.Errorf("%s: %v, want %v", op, err, readOnly)
		}
	}
	if head, err := s.Get("d"); err != nil || head.Revision != 1 {
		t.Errorf("get: %+v, %v", head, err)
	}
}

// TestRevisionOfAPersonStays: edits of an agent remove no newest revision of a person, and one of a person
// after them does.
func TestRevisionOfAPersonStays(t *testing.T) {
	s := open(t, definition.Options{Keep: 3})
	kept := func() (list []int) {
		t.Helper()
		all, err := s.Revisions("d")
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range all {
			list = append(list, r.Revision)
		}
		return list
	}
	edit := func(n int, by string, within []string, whole bool) {
		t.Helper()
		save(t, s, plain(fmt.Sprint(n)), revision.SaveOptions{Expect: revision.Any, By: by, Within: within, Whole: whole})
	}
	edit(1, "user", nil, true)
	edit(2, "user", nil, true)
	for n := 3; n <= 9; n++ {
		edit(n, "agent:ci", []string{"code/read"}, false)
	}
	if diff := cmp.Diff([]int{9, 8, 7, 2}, kept()); diff != "" {
		t.Errorf("after edits of an agent: %s", diff)
	}
	if _, err := s.Rollback(within(t), "d", 2, revision.SaveOptions{Expect: revision.Any, By: "user", Whole: true}); err != nil {
		t.Errorf("back to that of the person: %v", err)
	}
	if diff := cmp.Diff([]int{10, 9, 8}, kept()); diff != "" {
		t.Errorf("after an edit of a person: %s", diff)
	}
}

// TestTriggersFollowAbandonedEdits: the triggers of a sentinel follow its deletion also if its caller gives up before the
// commit is durable. They would go on firing.
func TestTriggersFollowAbandonedEdits(t *testing.T) {
	saved := make(chan sentinels.ID, 8)
	s := open(t, definition.Options{
		Saved: func(_ context.Context, id sentinels.ID) error { saved <- id; return nil },
		Await: func(ctx context.Context, ticket *store.Ticket) error {
			if ctx.Err() != nil { // also if the commit is done already
				return ctx.Err()
			}
			return ticket.Wait(ctx)
		},
	})
	save(t, s, plain("a"), revision.SaveOptions{})
	<-saved
	gone, cancel := context.WithCancel(within(t))
	cancel()
	if _, err := s.Delete(gone, "d", revision.SaveOptions{Expect: 1}); !errors.Is(err, context.Canceled) {
		t.Fatalf("deleted: %v", err)
	}
	select {
	case id := <-saved:
		if id != "d" {
			t.Errorf("the triggers of %q follow", id)
		}
	case <-within(t).Done():
		t.Fatal("the triggers follow no deletion")
	}
	if head, err := s.Head("d"); err != nil || !head.Deleted {
		t.Errorf("%+v, %v", head, err)
	}
}
