package eventlog_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime/internal/eventlog"
	"github.com/sentinel-runtime/sentinel/runtime/internal/rate"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// open opens the log in db. The zero values of opt are replaced by defaults.
func open(t testing.TB, db store.Store, opt eventlog.Options) *eventlog.Log {
	t.Helper()
	opt.Store, opt.Bucket = db, eventlog.Bucket
	if opt.Keep == 0 {
		opt.Keep = 10_000
	}
	if opt.MaxBytes == 0 {
		opt.MaxBytes = 64 << 20
	}
	if opt.MaxHops == 0 {
		opt.MaxHops = 16
	}
	if opt.Writable == nil {
		opt.Writable = func() error { return nil }
	}
	opt.Await = func(ctx context.Context, ticket *store.Ticket) error { return ticket.Wait(ctx) }
	var ids atomic.Uint64
	opt.NewID = func() string { return fmt.Sprint("id-", ids.Add(1)) }
	log, err := eventlog.Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	return log
}

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// emit appends an event to log.
func emit(t testing.TB, log *eventlog.Log, name, id string) sentinels.Event {
	t.Helper()
	e, err := log.Emit(within(t), sentinels.Event{ID: id, Name: name, Source: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func names(events []sentinels.Event) []string {
	out := []string{}
	for _, e := range events {
		out = append(out, e.Name+" "+e.ID)
	}
	return out
}

// The log keeps the newest events, reports exactly how many a reader has missed,
// and is the same after a restart, also with a smaller limit.
func TestKeepsNewestEvents(t *testing.T) {
	db := store.NewMemory()
	log := open(t, db, eventlog.Options{Keep: 5})
	for i := range 8 {
		emit(t, log, []string{"a:x", "b"}[i%2], fmt.Sprint(i))
	}
	check := func(log *eventlog.Log, keep int) {
		t.Helper()
		want := []string{"b 3", "a:x 4", "b 5", "a:x 6", "b 7"}[5-keep:]
		got, _, err := log.Newest("", 100, 0)
		if diff := cmp.Diff(want, names(got)); diff != "" || err != nil {
			t.Errorf("kept (-want +got):\n%s%v", diff, err)
		}
		if log.End() != 8 {
			t.Errorf("end %d, want 8", log.End())
		}
		m, err := log.Wait(within(t), "a:*", 1)
		if err != nil || m.Event.ID != map[int]string{5: "4", 2: "6"}[keep] || m.Offset != map[int]uint64{5: 5, 2: 7}[keep] || m.Lost != 7-keep {
			t.Errorf("after 1: %+v, %v", m, err)
		}
		if m, err := log.Wait(within(t), "**", 7); err != nil || m.Event.ID != "7" || m.Offset != 8 || m.Lost != 0 {
			t.Errorf("after 7: %+v, %v", m, err)
		}
	}
	check(log, 5)
	snap := db.Snapshot()
	check(open(t, snap, eventlog.Options{Keep: 5}), 5)
	check(open(t, snap.Snapshot(), eventlog.Options{Keep: 2}), 2)
}

// A reader that waits compares each event that passes with its pattern, so none of
// them counts as lost, however many there are.
func TestWaitingReaderLosesNothing(t *testing.T) {
	log := open(t, store.NewMemory(), eventlog.Options{Keep: 3})
	type got struct {
		id   string
		lost int
		err  error
	}
	found := make(chan got, 1)
	go func() {
		m, err := log.Wait(within(t), "wanted", 0)
		found <- got{m.Event.ID, m.Lost, err}
	}()
	untilSubscribed(t, log)
	for i := range 50 {
		emit(t, log, "other", fmt.Sprint(i))
	}
	emit(t, log, "wanted", "w")
	if g := <-found; g.id != "w" || g.lost != 0 || g.err != nil {
		t.Errorf("got %+v", g)
	}
	if n := log.Subscriptions(); n != 0 {
		t.Errorf("%d subscribers are left", n)
	}
}

// A wait that is cancelled leaves no subscription.
func TestCancelledWaitUnsubscribes(t *testing.T) {
	log := open(t, store.NewMemory(), eventlog.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(5*time.Millisecond, cancel)
	_, err := log.Wait(ctx, "never", 0)
	if !errors.Is(err, context.Canceled) || log.Subscriptions() != 0 {
		t.Errorf("%v, %d subscribers are left", err, log.Subscriptions())
	}
}

// An event that is emitted again is the first one, also after a restart and when it is
// emitted several times at once; one of another source is another event.
func TestEmitTwiceAppendsOnce(t *testing.T) {
	db := store.NewMemory()
	log := open(t, db, eventlog.Options{})
	first := emit(t, log, "a", "1")
	var together sync.WaitGroup
	for range 8 {
		together.Go(func() { emit(t, log, "a", "2") })
	}
	together.Wait()
	again, err := log.Emit(within(t), sentinels.Event{ID: "1", Name: "a", Source: "test", Data: []byte(`{"n":2}`)})
	if diff := cmp.Diff(first, again); diff != "" || err != nil {
		t.Errorf("again (-first +again):\n%s%v", diff, err)
	}
	if _, err := log.Emit(within(t), sentinels.Event{ID: "1", Name: "a", Source: "elsewhere"}); err != nil {
		t.Fatal(err)
	}
	log = open(t, db.Snapshot(), eventlog.Options{})
	emit(t, log, "a", "1")
	got, _, err := log.Newest("a", 10, 0)
	if diff := cmp.Diff([]string{"a 1", "a 2", "a 1"}, names(got)); diff != "" || err != nil {
		t.Errorf("log (-want +got):\n%s%v", diff, err)
	}
}

// An event that a client emits is refused beyond the limit too, and the error names
// the sentinels on its way.
func TestEmitNamesTheCircle(t *testing.T) {
	log := open(t, store.NewMemory(), eventlog.Options{MaxHops: 2})
	e := sentinels.Event{Name: "go", Hops: 3, Path: []string{"a", "b", "a"}}
	_, err := log.Emit(within(t), e)
	want := `event "go" would pass through 3 runs, the limit is 2: a chain of events runs in a circle: a -> b -> a`
	if got := abi.As(err); got == nil || got.Code != abi.Limit || got.Message != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// What the log keeps and readers get has no secrets, however the event came in, and no name
// has one.
func TestEventsWithoutSecrets(t *testing.T) {
	stars := func(v []byte) []byte { return bytes.ReplaceAll(v, []byte("hunter2"), []byte("***")) }
	log := open(t, store.NewMemory(), eventlog.Options{Redact: stars})
	data := json.RawMessage(`{"hunter2":"is hunter2"}`)
	if _, err := log.Emit(within(t), sentinels.Event{Name: "emitted", Data: data}); err != nil {
		t.Fatal(err)
	}
	db := store.NewMemory()
	commit := func(puts ...store.Put) *store.Ticket { return db.Enqueue(store.Batch{Puts: puts}) }
	log2 := open(t, db, eventlog.Options{Redact: stars})
	if err := log2.Append(sentinels.Event{ID: "1", Name: "appended", Data: data}, commit); err != nil {
		t.Fatal(err)
	}
	if err := log2.AppendAll([]sentinels.Event{{ID: "2", Name: "of a transaction", Data: data}}, commit); err != nil {
		t.Fatal(err)
	}
	for l, want := range map[*eventlog.Log]int{log: 1, log2: 2} {
		for n := range want {
			m, err := l.Wait(within(t), "**", uint64(n))
			if err != nil || string(m.Event.Data) != `{"***":"is ***"}` {
				t.Errorf("event %d: %s, %v", n, m.Event.Data, err)
			}
		}
	}
	_, err := log.Emit(within(t), sentinels.Event{Name: "of:hunter2"})
	if e := abi.As(err); e == nil || e.Code != abi.BadFields || strings.Contains(e.Message, "hunter2") {
		t.Errorf("a secret as a name: %v", err)
	}
}

// Readers with cursors of their own each get every matching event, once and in
// order, while others emit.
func TestHammer(t *testing.T) {
	const emitters, each, readers = 4, 150, 40
	log := open(t, store.NewMemory(), eventlog.Options{})
	var all sync.WaitGroup
	for r := range readers {
		pattern := []string{"load:0", "load:*", "**"}[r%3]
		all.Go(func() {
			want, at, last := emitters*each, uint64(0), map[string]int{}
			if pattern == "load:0" {
				want = each
			}
			for range want {
				m, err := log.Wait(within(t), pattern, at)
				if err != nil || m.Lost != 0 || m.Offset <= at {
					t.Errorf("reader %d after %d: %+v, %v", r, at, m, err)
					return
				}
				name, seq := m.Event.Name, 0
				fmt.Sscan(string(m.Event.Data), &seq)
				if seq != last[name]+1 {
					t.Errorf("reader %d: %s %d came after %d", r, name, seq, last[name])
				}
				at, last[name] = m.Offset, seq
			}
		})
	}
	for i := range emitters {
		all.Go(func() {
			for n := range each {
				if _, err := log.Emit(within(t), sentinels.Event{Name: fmt.Sprint("load:", i), Data: fmt.Append(nil, n+1)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// sizedEvent has the same size in the log whenever it is emitted.
func sizedEvent(name, id, data string) sentinels.Event {
	text, _ := json.Marshal(data) // a string can always be encoded
	return sentinels.Event{ID: id, Name: name, Source: "test", Data: text, Time: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)}
}

// storedSize is the size in the log of a sizedEvent with an id of one letter.
func storedSize(t *testing.T, name, data string) int64 {
	t.Helper()
	b, err := json.Marshal(sizedEvent(name, "0", data))
	if err != nil {
		t.Fatal(err)
	}
	return int64(len(b))
}

// The log keeps the newest events up to its size limit, and the same ones after a
// restart; the newest event stays even if it alone is larger.
func TestKeepsBytes(t *testing.T) {
	data := strings.Repeat("x", 1000)
	size := storedSize(t, "e", data)
	for name, tt := range map[string]struct {
		limit int64
		want  []string
	}{
		"exactly three":   {3 * size, []string{"e 5", "e 6", "e 7"}},
		"one byte less":   {3*size - 1, []string{"e 6", "e 7"}},
		"one byte more":   {3*size + 1, []string{"e 5", "e 6", "e 7"}},
		"less than one":   {size - 1, []string{"e 7"}},
		"more than there": {9 * size, []string{"e 0", "e 1", "e 2", "e 3", "e 4", "e 5", "e 6", "e 7"}},
	} {
		t.Run(name, func(t *testing.T) {
			db := store.NewMemory()
			opt := eventlog.Options{MaxBytes: tt.limit}
			log := open(t, db, opt)
			for i := range 8 {
				if _, err := log.Emit(within(t), sizedEvent("e", fmt.Sprint(i), data)); err != nil {
					t.Fatal(err)
				}
			}
			holds(t, log, tt.want)
			if n := storedEvents(t, db); n != len(tt.want) {
				t.Errorf("%d events in the store, want %d", n, len(tt.want))
			}
			snap := db.Snapshot()
			holds(t, open(t, snap, opt), tt.want)

			// With a smaller limit from now on.
			less := db.Snapshot()
			log = open(t, less, eventlog.Options{MaxBytes: size})
			holds(t, log, []string{"e 7"})
			if _, err := log.Emit(within(t), sizedEvent("e", "8", data)); err != nil {
				t.Fatal(err)
			}
			holds(t, log, []string{"e 8"})
			if n := storedEvents(t, less); n != 1 {
				t.Errorf("%d events in the store, want 1", n)
			}
		})
	}
}

// holds checks the events of a log and the number that a reader from the start has
// missed.
func holds(t *testing.T, log *eventlog.Log, want []string) {
	t.Helper()
	got, _, err := log.Newest("", 100, 0)
	if diff := cmp.Diff(want, names(got)); diff != "" || err != nil {
		t.Errorf("kept (-want +got):\n%s%v", diff, err)
	}
	m, err := log.Wait(within(t), "**", 0)
	if gone := int(log.End()) - len(want); m.Lost != gone || m.Offset != uint64(gone+1) || err != nil {
		t.Errorf("first event at %d with %d missed, %v; want %d missed", m.Offset, m.Lost, err, gone)
	}
}

func storedEvents(t *testing.T, db store.Store) (n int) {
	t.Helper()
	if err := db.Scan("events", nil, nil, false, func(_, _ []byte) bool { n++; return true }); err != nil {
		t.Fatal(err)
	}
	return n
}

func untilSubscribed(t *testing.T, log *eventlog.Log) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); log.Subscriptions() == 0; time.Sleep(200 * time.Microsecond) {
		if time.Now().After(deadline) {
			t.Fatal("no reader waits after 2 minutes")
		}
	}
}

// An event whose commit the store refuses is in no list and can be emitted again; its
// offset is not used a second time, also after a restart.
func TestRefusedCommitLeavesAGap(t *testing.T) {
	db := store.NewMemory()
	log := open(t, db, eventlog.Options{})
	emit(t, log, "a", "1")
	refused := errors.New("refused")
	e := sentinels.Event{ID: "2", Name: "a", Source: "test"}
	var ticket *store.Ticket
	err := log.AppendAll([]sentinels.Event{e, e}, func(puts ...store.Put) *store.Ticket {
		if len(puts) != 1 {
			t.Errorf("%d writes for one event", len(puts))
		}
		puts[0].Check = func([]byte, bool) error { return refused }
		ticket = db.Enqueue(store.Batch{Puts: puts})
		return ticket
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := ticket.Wait(within(t)); !errors.Is(err, refused) {
		t.Errorf("commit: %v, want %v", err, refused)
	}
	check := func(log *eventlog.Log, want ...string) {
		t.Helper()
		got, _, err := log.Newest("", 10, 0)
		if diff := cmp.Diff(want, names(got)); diff != "" || err != nil {
			t.Errorf("log (-want +got):\n%s%v", diff, err)
		}
		m, err := log.Wait(within(t), "a", 1)
		if err != nil || m.Offset != 3 || m.Lost != 0 {
			t.Errorf("after 1: %+v, %v", m, err)
		}
	}
	emit(t, log, "a", "2")
	check(log, "a 1", "a 2")
	check(open(t, db.Snapshot(), eventlog.Options{}), "a 1", "a 2")
}

// A wait without an event reports how far it has compared events with the pattern.
func TestCancelledWaitReportsItsCursor(t *testing.T) {
	log := open(t, store.NewMemory(), eventlog.Options{Keep: 3})
	for i := range 5 {
		emit(t, log, "other", fmt.Sprint(i))
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	m, err := log.Wait(ctx, "wanted", 1)
	if diff := cmp.Diff(eventlog.Match{Lost: 1, Through: 5}, m); diff != "" || !errors.Is(err, gone) {
		t.Errorf("match (-want +got):\n%s%v", diff, err)
	}
}

// An emission counts accepted events alone, and gives back all of them.
func TestEmissionCountsAcceptedEvents(t *testing.T) {
	log := open(t, store.NewMemory(), eventlog.Options{MaxHops: 1})
	used, full := int64(0), errors.New("full")
	m := eventlog.NewEmission("", func(name string, size int64) error {
		if used+size > 10 {
			return full
		}
		used += size
		return nil
	}, func(size int64) { used -= size })
	ctx := eventlog.WithEmission(within(t), m)
	for _, tt := range []struct {
		e    sentinels.Event
		want error
	}{
		{sentinels.Event{Name: "a", Data: json.RawMessage(`"12345"`)}, nil},
		{sentinels.Event{Name: "a", Data: json.RawMessage(`12`)}, full},
		{sentinels.Event{Name: "ab"}, nil},
	} {
		if _, err := log.Emit(ctx, tt.e); !errors.Is(err, tt.want) {
			t.Errorf("%+v: %v, want %v", tt.e, err, tt.want)
		}
	}
	if _, err := log.Emit(ctx, sentinels.Event{Name: "c", Hops: 2}); abi.CodeOf(err) != abi.Limit {
		t.Errorf("a chain that is too long: %v", err)
	}
	if m.Total() != 10 || used != 10 {
		t.Errorf("total %d, used %d, want 10", m.Total(), used)
	}
	if m.Revoke(); m.Total() != 0 || used != 0 {
		t.Errorf("after Revoke: total %d, used %d", m.Total(), used)
	}
}

// TestRateOfAgents: an agent emits as many events a minute as the log permits it, and gets more with time; events of
// persons, of other agents and of transactions do not count for it.
func TestRateOfAgents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := store.NewMemory()
		defer func() {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		}()
		log := open(t, db, eventlog.Options{Rate: rate.New(3, 3, func(string) {})})
		emit := func(by string) error {
			_, err := log.Emit(t.Context(), sentinels.Event{Name: "e", By: by})
			return err
		}
		for range 3 {
			if err := emit("agent:ci"); err != nil {
				t.Fatal(err)
			}
		}
		err := emit("agent:ci")
		if e := abi.As(err); abi.CodeOf(err) != abi.Limit || !strings.Contains(err.Error(), "limits.agentEvents") || e.RetryAfterMs != 20_000 {
			t.Errorf("%+v", err)
		}
		for _, by := range []string{"", "agent:other", "model"} {
			if err := emit(by); err != nil {
				t.Errorf("of %q: %v", by, err)
			}
		}
		// A call in which several events are emitted in transactions is refused at its first one, or not at all.
		call := eventlog.WithEmission(t.Context(), eventlog.NewEmission("agent:ci", nil, nil))
		accept := func(ctx context.Context) error {
			_, err := log.Accept(ctx, sentinels.Event{Name: "ticket:update"})
			return err
		}
		if err := accept(call); abi.CodeOf(err) != abi.Limit {
			t.Errorf("of a transaction: %v", err)
		}
		if err := accept(t.Context()); err != nil {
			t.Errorf("of a person's transaction: %v", err)
		}
		time.Sleep(20 * time.Second)
		for range 3 {
			if err := accept(call); err != nil {
				t.Errorf("later: %v", err)
			}
		}
		if e := abi.As(emit("agent:ci")); e == nil || e.RetryAfterMs != 60_000 {
			t.Errorf("behind three events for one: %+v", e)
		}
		time.Sleep(time.Minute)
		for range 1000 {
			if err := accept(call); err != nil {
				t.Fatal(err)
			}
		}
		if e := abi.As(emit("agent:ci")); e == nil || e.RetryAfterMs != 80_000 {
			t.Errorf("behind a thousand events in one call: %+v", e)
		}
	})
}

// An emitter that emits much loses its own oldest events, and no other does; readers learn how
// many they missed, also after a restart.
func TestOneEmitterKeepsItsShare(t *testing.T) {
	for name, opt := range map[string]eventlog.Options{"number": {Keep: 20}, "bytes": {MaxBytes: 20 * 105}} {
		db := store.NewMemory()
		log := open(t, db, opt)
		from := func(e sentinels.Event) {
			t.Helper()
			e.ID, e.Name, e.Time = fmt.Sprintf("%03d", log.End()+1), "e", time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
			if _, err := log.Emit(within(t), e); err != nil {
				t.Fatal(err)
			}
		}
		from(sentinels.Event{Source: "user"})
		for i := range 300 {
			switch { // an agent, by itself, by runs of sentinels of any id, and by those that these start
			case i%3 == 0:
				from(sentinels.Event{Source: "agent:ci", By: "agent:ci"})
			case i%3 == 1:
				from(sentinels.Event{Source: fmt.Sprint("sentinel/", i), By: "agent:ci"})
			case i == 101:
				from(sentinels.Event{Source: "sentinel/backup", Path: []string{"backup"}})
			default:
				from(sentinels.Event{Source: fmt.Sprint("sentinel/", i), Path: []string{"loop", fmt.Sprint(i)}})
			}
		}
		check := func(log *eventlog.Log) {
			t.Helper()
			got, _, err := log.Newest("", 1000, 0)
			if err != nil {
				t.Fatal(err)
			}
			sum := map[string]int{}
			for _, e := range got {
				switch {
				case e.By != "":
					sum[e.By]++
				case len(e.Path) > 0:
					sum[e.Path[0]]++
				default:
					sum[e.Source]++
				}
			}
			if sum["user"] != 1 || sum["backup"] != 1 || sum["agent:ci"] < 5 || sum["loop"] < 5 || len(got) > 25 || len(got) < 15 {
				t.Errorf("%s: %v", name, sum)
			}
			for at, lost := uint64(0), 0; at < log.End(); {
				m, err := log.Wait(within(t), "**", at)
				if err != nil {
					t.Fatal(err)
				}
				at = m.Offset
				if lost += m.Lost; at == log.End() && lost+len(got) != 301 {
					t.Errorf("%s: %d are left and %d lost of 301", name, len(got), lost)
				}
			}
			if n := storedEvents(t, db); n > 2*len(got) {
				t.Errorf("%s: %d records for %d events", name, n, len(got))
			}
		}
		check(log)
		db = db.Snapshot()
		log = open(t, db, opt)
		check(log)
		from(sentinels.Event{Source: "agent:ci", By: "agent:ci"})
		if got, _, err := log.Newest("", 1000, 0); err != nil || got[0].Source != "user" {
			t.Errorf("%s, after a restart: %+v, %v", name, got, err)
		}
	}
}

// TestNewestWithinBytes: a bound of bytes leaves out older events and says so; the newest is returned anyway.
func TestNewestWithinBytes(t *testing.T) {
	log := open(t, store.NewMemory(), eventlog.Options{})
	for range 4 {
		if _, err := log.Emit(within(t), sentinels.Event{Name: "a", Data: []byte(`"` + strings.Repeat("x", 1000) + `"`)}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		limit int
		bytes int64
		want  int
		more  bool
	}{{10, 0, 4, false}, {10, 100_000, 4, false}, {2, 100_000, 2, false}, {10, 3000, 2, true}, {10, 1, 1, true}, {1, 1, 1, false}} {
		got, more, err := log.Newest("a", c.limit, c.bytes)
		if err != nil || len(got) != c.want || more != c.more {
			t.Errorf("%+v: %d events, more %t, %v", c, len(got), more, err)
		}
	}
}
