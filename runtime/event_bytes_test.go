package runtime_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// sizedEvent has the same size in the log whenever it is emitted.
func sizedEvent(name, id, data string) sentinels.Event {
	text, _ := json.Marshal(data) // a string can always be encoded
	return sentinels.Event{ID: id, Name: name, Source: "test", Data: text, Time: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)}
}

// storedSize is the size in the log of an event that emit emits, or, with data,
// of a sizedEvent with an id of one letter.
func storedSize(t *testing.T, name, data string) int64 {
	t.Helper()
	e := sizedEvent(name, "0", data)
	if data == "" {
		e.ID, e.Data = strings.Repeat("0", 36), nil
	}
	b, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return int64(len(b))
}

// The log holds so many bytes of events, the newest ones, and the same ones after
// a restart; the newest event stays even if it alone has more.
func TestEventLogKeepsBytes(t *testing.T) {
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
			opt := runtime.Options{Limits: runtime.Limits{KeepEventBytes: tt.limit}}
			rt := open(t, newFakeHost(), db, opt)
			for i := range 8 {
				if _, err := rt.Emit(within(t), sizedEvent("e", fmt.Sprint(i), data)); err != nil {
					t.Fatal(err)
				}
			}
			holds(t, rt, tt.want)
			if n := storedEvents(t, db); n != len(tt.want) {
				t.Errorf("%d events in the store, want %d", n, len(tt.want))
			}
			snap := db.Snapshot()
			holds(t, open(t, newFakeHost(), snap, opt), tt.want)

			// With a smaller limit from now on.
			less := db.Snapshot()
			rt = open(t, newFakeHost(), less, runtime.Options{Limits: runtime.Limits{KeepEventBytes: size}})
			holds(t, rt, []string{"e 7"})
			if _, err := rt.Emit(within(t), sizedEvent("e", "8", data)); err != nil {
				t.Fatal(err)
			}
			holds(t, rt, []string{"e 8"})
			if n := storedEvents(t, less); n != 1 {
				t.Errorf("%d events in the store, want 1", n)
			}
		})
	}
}

// holds compares the events of a log and says how many a reader from the start
// has missed.
func holds(t *testing.T, rt *runtime.Runtime, want []string) {
	t.Helper()
	got, err := rt.Events("", 100)
	if diff := cmp.Diff(want, names(got)); diff != "" || err != nil {
		t.Errorf("kept (-want +got):\n%s%v", diff, err)
	}
	log := runtime.EventLog(rt)
	_, at, lost, err := log.Next(within(t), "**", 0)
	if gone := int(log.Position()) - len(want); lost != gone || at != uint64(gone+1) || err != nil {
		t.Errorf("first event at %d with %d missed, %v; want %d missed", at, lost, err, gone)
	}
}

func storedEvents(t *testing.T, db store.Store) (n int) {
	t.Helper()
	if err := db.Scan("events", nil, nil, false, func(_, _ []byte) bool { n++; return true }); err != nil {
		t.Fatal(err)
	}
	return n
}
