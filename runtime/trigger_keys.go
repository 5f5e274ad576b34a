package runtime

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// How many names of fires a trigger remembers, and for how long. A name takes
// about 150 bytes in the store and none in memory once it is durable. Replay names
// have a bound of their own, so that keys cannot push them out: at 300 signed
// requests a second it holds the default window of five minutes.
const (
	keepKeys    = 10_000
	keepKeyFor  = 30 * 24 * time.Hour
	keepReplays = 100_000
)

// A keySpace is one kind of names by which a repeated fire is known. Each has a
// window of its own in the trigger's record.
type keySpace struct {
	name, number byte // in the places of its pairs
	most         uint64
	keep         time.Duration
	window       func(*triggerRecord) *keyWindow
}

// keys are the idempotency keys of fires. One counts as long as it is kept.
var keys = keySpace{'k', 'n', keepKeys, keepKeyFor, func(r *triggerRecord) *keyWindow { return &r.Keys }}

// replays are the names of signed requests. One counts for the time that its
// trigger wants.
func replays(keep time.Duration) keySpace {
	return keySpace{'r', 'm', keepReplays, keep, func(r *triggerRecord) *keyWindow { return &r.Replays }}
}

// A fireName is one name of a fire.
type fireName struct {
	space keySpace
	name  string
}

// namesOf are the names by which a repetition of f is known.
func namesOf(f triggers.Firing) (list []fireName) {
	if f.Key != "" {
		list = append(list, fireName{keys, f.Key})
	}
	if f.Replay != "" && f.ReplayFor > 0 {
		list = append(list, fireName{replays(f.ReplayFor), f.Replay})
	}
	return list
}

// A keyWindow is the numbers under which the kept names of a trigger stand, in
// the order in which they came.
type keyWindow struct {
	Next     uint64 `json:"next,omitempty"`     // number of the next name
	First    uint64 `json:"first,omitempty"`    // of the oldest that is kept
	OldestAt int64  `json:"oldestAt,omitempty"` // when that one came, microseconds since 1970
}

// A keyRecord is the outcome of the fire with a name. It is kept twice, by the
// name's digest and by its number, because the oldest must be found too.
type keyRecord struct {
	Number  uint64           `json:"n"`
	At      int64            `json:"at"` // microseconds since 1970
	Outcome triggers.Outcome `json:"outcome"`
	Run     sentinels.RunID  `json:"run,omitempty"`
}

// A namedRecord is a record that is about to be written, with its place.
type namedRecord struct {
	place []byte
	rec   keyRecord
}

func keyPrefix(id sentinels.ID, trigger string) []byte { return append(triggerKey(id, trigger), 0) }

// place is where the record of a name stands. Names come from outside and may be
// long or secret, so their digest stands for them.
func (n fireName) place(t *armedTrigger) []byte {
	sum := sha256.Sum256([]byte(n.name))
	return append(append(keyPrefix(t.s.id, t.name), n.space.name), sum[:16]...)
}

func (s keySpace) numberPlace(t *armedTrigger, n uint64) []byte {
	return binary.BigEndian.AppendUint64(append(keyPrefix(t.s.id, t.name), s.number), n)
}

// freshKeys are the records whose commit is on its way, by their place: readers of
// the store do not see them yet.
type freshKeys struct {
	mu   sync.Mutex
	keys map[string]keyRecord
}

func (f *freshKeys) get(place []byte) (keyRecord, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	rec, ok := f.keys[string(place)]
	return rec, ok
}

// hold keeps a record until its commit is done.
func (f *freshKeys) hold(place []byte, rec keyRecord, until *store.Ticket) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.keys == nil {
		f.keys = map[string]keyRecord{}
	}
	f.keys[string(place)] = rec
	until.OnDone(func(error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.keys[string(place)] == rec { // else a later one is on its way
			delete(f.keys, string(place))
		}
	})
}

// repeated finds the fire that f repeats. The reason is empty if there is none.
func (d *draft) repeated(f triggers.Firing) (before keyRecord, reason string, err error) {
	for _, n := range namesOf(f) {
		rec, known, err := d.t.admitted(n)
		switch {
		case err != nil:
			return rec, "", err
		case !known, n.space.name != keys.name && d.at.Sub(microTime(rec.At)) > n.space.keep:
		case n.space.name == keys.name:
			return rec, fmt.Sprintf("a fire with its key was %s before", rec.Outcome), nil
		default:
			return rec, fmt.Sprintf("the same signed request was %s less than %s before", rec.Outcome, n.space.keep), nil
		}
	}
	return keyRecord{}, "", nil
}

// admitted finds the fire that came under the same name before.
func (t *armedTrigger) admitted(n fireName) (keyRecord, bool, error) {
	place := n.place(t)
	// First what is on its way: it leaves only when the store has it.
	if rec, ok := t.s.fresh.get(place); ok {
		return rec, true, nil
	}
	raw, ok, err := t.s.a.rt.db.Get(bucketTriggerKeys, place)
	if err != nil || !ok {
		return keyRecord{}, false, err
	}
	var rec keyRecord
	if err := json.Unmarshal(raw, &rec); err != nil {
		return rec, false, fmt.Errorf("read key of trigger %q: %w", t.name, err)
	}
	return rec, true, nil
}

// remember keeps the outcome of a fire, one that is new or one that has waited,
// under each of its names.
func (d *draft) remember(f triggers.Firing, rec keyRecord) error {
	if d.t.gone {
		return nil
	}
	for _, n := range namesOf(f) {
		if err := d.rememberName(n, rec); err != nil {
			return err
		}
	}
	return nil
}

func (d *draft) rememberName(n fireName, rec keyRecord) error {
	if !d.waited {
		return d.addName(n, rec)
	}
	before, ok, err := d.t.admitted(n)
	if err != nil || !ok {
		return err
	}
	// It keeps its place in the window: waiting does not make it newer.
	rec.Number, rec.At = before.Number, before.At
	d.writeName(n, rec)
	return nil
}

func (d *draft) writeName(n fireName, rec keyRecord) {
	place := n.place(d.t)
	d.names = append(d.names, namedRecord{place, rec})
	d.puts = append(d.puts, encodePut(bucketTriggerKeys, place, rec))
}

// addName remembers a name, and forgets up to two old ones, so that the window
// never grows beyond its bound and no commit is large.
func (d *draft) addName(n fireName, rec keyRecord) error {
	w, now := n.space.window(&d.rec), d.at
	rec.Number, rec.At = w.Next, now.UnixMicro()
	if w.Next == w.First { // the window is empty
		w.OldestAt = rec.At
	}
	w.Next++
	d.writeName(n, rec)
	d.puts = append(d.puts, store.Put{Bucket: bucketTriggerKeys, Key: n.space.numberPlace(d.t, rec.Number),
		Value: append(binary.BigEndian.AppendUint64(nil, uint64(rec.At)), n.place(d.t)...)})
	for range 2 { // one more than was added, so that a window that is too large shrinks
		if w.Next-w.First <= n.space.most && (w.Next-w.First <= 1 || now.Sub(microTime(w.OldestAt)) <= n.space.keep) {
			return nil
		}
		if err := d.dropName(n.space, w, rec.At); err != nil {
			return err
		}
	}
	return nil
}

// dropName forgets the oldest name of a space. Its place may have been taken by
// the same name, coming again after it was forgotten; then only the number goes.
// newest is when the name came that is added just now.
func (d *draft) dropName(space keySpace, w *keyWindow, newest int64) error {
	db := d.t.s.a.rt.db
	at := func(n uint64) (micros int64, place []byte, err error) {
		raw, ok, err := db.Get(bucketTriggerKeys, space.numberPlace(d.t, n))
		if err != nil || !ok || len(raw) < 8 {
			return 0, nil, err
		}
		return int64(binary.BigEndian.Uint64(raw)), raw[8:], nil
	}
	_, place, err := at(w.First)
	if err != nil {
		return err
	}
	if place != nil {
		d.puts = append(d.puts, store.Put{Bucket: bucketTriggerKeys, Key: space.numberPlace(d.t, w.First), Delete: true})
		var old keyRecord
		raw, ok, err := db.Get(bucketTriggerKeys, place)
		if err == nil && ok {
			err = json.Unmarshal(raw, &old)
		}
		if err != nil {
			return err
		}
		if ok && old.Number == w.First && !d.writes(place) {
			d.puts = append(d.puts, store.Put{Bucket: bucketTriggerKeys, Key: place, Delete: true})
		}
	}
	w.First++
	if w.OldestAt, place, err = at(w.First); place == nil {
		w.OldestAt = newest // the next one's commit is on its way, so it is new
	}
	return err
}

// writes reports whether the draft writes a record at a place.
func (d *draft) writes(place []byte) bool {
	for _, n := range d.names {
		if string(n.place) == string(place) {
			return true
		}
	}
	return false
}
