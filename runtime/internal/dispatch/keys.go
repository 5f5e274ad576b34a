package dispatch

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

// How many names of firings a trigger remembers, and for how long. A name takes
// about 150 bytes in the store, and no memory once it is durable. Replay names
// have a limit of their own, so that keys cannot displace them: at 300 signed
// requests a second it holds the default window of five minutes.
const (
	keepKeys    = 10_000
	keepKeyFor  = 30 * 24 * time.Hour
	keepReplays = 100_000
)

// A keySpace is one kind of names that identify a repeated firing. Each has a
// window of its own in the trigger's record.
type keySpace struct {
	name, number byte // in the places of its pairs
	most         uint64
	keep         time.Duration
	window       func(*record) *keyWindow
}

// idempotencyKeys are the keys of firings. One is known as long as it is kept.
func idempotencyKeys() keySpace {
	return keySpace{'k', 'n', keepKeys, keepKeyFor, func(r *record) *keyWindow { return &r.Keys }}
}

// replays are the names of signed requests. One is known for the time that its
// trigger says.
func replays(keep time.Duration) keySpace {
	return keySpace{'r', 'm', keepReplays, keep, func(r *record) *keyWindow { return &r.Replays }}
}

func (s keySpace) isReplay() bool { return s.name == 'r' }

// A firingName is one name of a firing.
type firingName struct {
	space keySpace
	name  string
}

// namesOf returns the names that identify a repetition of f.
func namesOf(f triggers.Firing) (list []firingName) {
	if f.Key != "" {
		list = append(list, firingName{idempotencyKeys(), f.Key})
	}
	if f.Replay != "" && f.ReplayFor > 0 {
		list = append(list, firingName{replays(f.ReplayFor), f.Replay})
	}
	return list
}

// A keyWindow is the range of numbers of the names that are kept of a trigger, in
// the order in which they came.
type keyWindow struct {
	Next     uint64 `json:"next,omitempty"`     // number of the next name
	First    uint64 `json:"first,omitempty"`    // of the oldest that is kept
	OldestAt int64  `json:"oldestAt,omitempty"` // when that one came, microseconds since 1970
}

// A keyRecord is the outcome of the firing with a name. It is stored by the digest
// of the name. Its number leads to it, because the oldest must be found too.
type keyRecord struct {
	Number  uint64           `json:"n"`
	At      int64            `json:"at"` // microseconds since 1970
	Outcome triggers.Outcome `json:"outcome"`
	Run     sentinels.RunID  `json:"run,omitempty"`
}

// A namedRecord is a record that will be written, with its place.
type namedRecord struct {
	place []byte
	rec   keyRecord
}

func keyPrefix(id sentinels.ID, trigger string) []byte { return append(triggerKey(id, trigger), 0) }

// place is the key of the record of a name. Names come from outside and may be
// long or secret, so their digest is stored.
func (n firingName) place(t *armedTrigger) []byte {
	sum := sha256.Sum256([]byte(n.name))
	return append(append(keyPrefix(t.s.id, t.name), n.space.name), sum[:16]...)
}

func (s keySpace) numberPlace(t *armedTrigger, n uint64) []byte {
	return binary.BigEndian.AppendUint64(append(keyPrefix(t.s.id, t.name), s.number), n)
}

// freshKeys are the records whose commit is under way, by their place: readers of
// the store do not see them yet.
//
// # Concurrency
//
// Safe for concurrent use.
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
		if f.keys[string(place)] == rec { // else a later one is under way
			delete(f.keys, string(place))
		}
	})
}

// repeated finds the firing that f repeats. The reason is empty if there is none.
func (dec *decision) repeated(f triggers.Firing) (before keyRecord, reason string, err error) {
	for _, n := range namesOf(f) {
		rec, known, err := dec.t.admitted(n)
		switch {
		case err != nil:
			return rec, "", err
		case !known, n.space.isReplay() && dec.at.Sub(time.UnixMicro(rec.At)) > n.space.keep:
		case !n.space.isReplay():
			return rec, fmt.Sprintf("a firing with its key was %s before", rec.Outcome), nil
		default:
			return rec, fmt.Sprintf("the same signed request was %s less than %s before", rec.Outcome, n.space.keep), nil
		}
	}
	return keyRecord{}, "", nil
}

// admitted finds the firing that came with the same name before.
func (t *armedTrigger) admitted(n firingName) (keyRecord, bool, error) {
	place := n.place(t)
	// First what is under way: it is removed only when the store has it.
	if rec, ok := t.s.fresh.get(place); ok {
		return rec, true, nil
	}
	raw, ok, err := t.s.d.opt.Store.Get(bucketKeys, place)
	if err != nil || !ok {
		return keyRecord{}, false, err
	}
	var rec keyRecord
	if err := json.Unmarshal(raw, &rec); err != nil {
		return rec, false, fmt.Errorf("read key of trigger %q: %w", t.name, err)
	}
	return rec, true, nil
}

// remember stores the outcome of a firing, a new one or one that has waited,
// under each of its names.
func (dec *decision) remember(f triggers.Firing, rec keyRecord) error {
	if dec.t.gone {
		return nil
	}
	for _, n := range namesOf(f) {
		if err := dec.rememberName(n, rec); err != nil {
			return err
		}
	}
	return nil
}

func (dec *decision) rememberName(n firingName, rec keyRecord) error {
	if !dec.waited {
		return dec.addName(n, rec)
	}
	before, ok, err := dec.t.admitted(n)
	if err != nil || !ok {
		return err
	}
	// It keeps its place in the window: waiting does not make it newer.
	rec.Number, rec.At = before.Number, before.At
	dec.writeName(n, rec)
	return nil
}

func (dec *decision) writeName(n firingName, rec keyRecord) {
	place := n.place(dec.t)
	dec.names = append(dec.names, namedRecord{place, rec})
	dec.puts = append(dec.puts, encodePut(bucketKeys, place, rec))
}

// addName remembers a name and forgets up to two old ones, so that the window
// stays within its limit and no commit is large.
func (dec *decision) addName(n firingName, rec keyRecord) error {
	w, now := n.space.window(&dec.rec), dec.at
	rec.Number, rec.At = w.Next, now.UnixMicro()
	if w.Next == w.First { // the window is empty
		w.OldestAt = rec.At
	}
	w.Next++
	dec.writeName(n, rec)
	dec.puts = append(dec.puts, store.Put{Bucket: bucketKeys, Key: n.space.numberPlace(dec.t, rec.Number),
		Value: append(binary.BigEndian.AppendUint64(nil, uint64(rec.At)), n.place(dec.t)...)})
	for range 2 { // one more than was added, so that a window that is too large shrinks
		if w.Next-w.First <= n.space.most && (w.Next-w.First <= 1 || now.Sub(time.UnixMicro(w.OldestAt)) <= n.space.keep) {
			return nil
		}
		if err := dec.dropName(n.space, w, rec.At); err != nil {
			return err
		}
	}
	return nil
}

// dropName forgets the oldest name of a space. If the same name came again after
// it was forgotten, its place has the newer record, and only the number is deleted.
// newest is when the name that is added now came.
func (dec *decision) dropName(space keySpace, w *keyWindow, newest int64) error {
	db := dec.t.s.d.opt.Store
	at := func(n uint64) (micros int64, place []byte, err error) {
		raw, ok, err := db.Get(bucketKeys, space.numberPlace(dec.t, n))
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
		dec.puts = append(dec.puts, store.Put{Bucket: bucketKeys, Key: space.numberPlace(dec.t, w.First), Delete: true})
		var old keyRecord
		raw, ok, err := db.Get(bucketKeys, place)
		if err == nil && ok {
			err = json.Unmarshal(raw, &old)
		}
		if err != nil {
			return err
		}
		if ok && old.Number == w.First && !dec.writes(place) {
			dec.puts = append(dec.puts, store.Put{Bucket: bucketKeys, Key: place, Delete: true})
		}
	}
	w.First++
	if w.OldestAt, place, err = at(w.First); place == nil {
		w.OldestAt = newest // the commit of the next one is under way, so it is new
	}
	return err
}

// writes reports whether the decision writes a record at a place.
func (dec *decision) writes(place []byte) bool {
	for _, n := range dec.names {
		if string(n.place) == string(place) {
			return true
		}
	}
	return false
}
