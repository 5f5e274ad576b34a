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

// How many keys of fires a trigger remembers, and for how long. A key takes
// about 150 bytes in the store and none in memory once it is durable.
const (
	keepKeys   = 10_000
	keepKeyFor = 30 * 24 * time.Hour
)

// A keyWindow is the numbers under which the kept keys of a trigger stand, in
// the order in which they came.
type keyWindow struct {
	Next     uint64 `json:"next,omitempty"`     // number of the next key
	First    uint64 `json:"first,omitempty"`    // of the oldest that is kept
	OldestAt int64  `json:"oldestAt,omitempty"` // when that one came, microseconds since 1970
}

// A keyRecord says what became of the fire with a key. It is kept twice, by the
// key's digest and by its number, because the oldest must be found too.
type keyRecord struct {
	Number  uint64           `json:"n"`
	At      int64            `json:"at"` // microseconds since 1970
	Outcome triggers.Outcome `json:"outcome"`
	Run     sentinels.RunID  `json:"run,omitempty"`
}

func keyPrefix(id sentinels.ID, name string) []byte { return append(triggerKey(id, name), 0) }

// keyPlace is where the record of a key stands. Keys come from outside and may
// be long, so their digest stands for them.
func keyPlace(id sentinels.ID, name, key string) []byte {
	sum := sha256.Sum256([]byte(key))
	return append(append(keyPrefix(id, name), 'k'), sum[:16]...)
}

func numberPlace(id sentinels.ID, name string, n uint64) []byte {
	return binary.BigEndian.AppendUint64(append(keyPrefix(id, name), 'n'), n)
}

// freshKeys are the keys whose commit is on its way, by their place: readers of
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

// admitted finds the fire that came with the same key before.
func (t *armedTrigger) admitted(key string) (keyRecord, bool, error) {
	if key == "" {
		return keyRecord{}, false, nil
	}
	place := keyPlace(t.s.id, t.name, key)
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

// addKey remembers the key of a fire, and forgets up to two old ones, so that
// the window never grows beyond its bound and no commit is large.
func (d *draft) addKey(key string, rec keyRecord, now time.Time) error {
	id, name, w := d.t.s.id, d.t.name, &d.rec.Keys
	rec.Number, rec.At = w.Next, now.UnixMicro()
	if w.Next == w.First { // the window is empty
		w.OldestAt = rec.At
	}
	w.Next++
	d.key, d.keyRec = keyPlace(id, name, key), rec
	d.puts = append(d.puts, encodePut(bucketTriggerKeys, d.key, rec),
		store.Put{Bucket: bucketTriggerKeys, Key: numberPlace(id, name, rec.Number), Value: append(binary.BigEndian.AppendUint64(nil, uint64(rec.At)), d.key...)})
	for range 2 { // one more than comes in, so a window that is too large shrinks
		if w.Next-w.First <= keepKeys && (w.Next-w.First <= 1 || now.Sub(microTime(w.OldestAt)) <= keepKeyFor) {
			return nil
		}
		if err := d.dropKey(w); err != nil {
			return err
		}
	}
	return nil
}

// dropKey forgets the oldest key. Its place may have been taken by the same key
// coming again after it was forgotten; then only the number goes.
func (d *draft) dropKey(w *keyWindow) error {
	db := d.t.s.a.rt.db
	at := func(n uint64) (micros int64, place []byte, err error) {
		raw, ok, err := db.Get(bucketTriggerKeys, numberPlace(d.t.s.id, d.t.name, n))
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
		d.puts = append(d.puts, store.Put{Bucket: bucketTriggerKeys, Key: numberPlace(d.t.s.id, d.t.name, w.First), Delete: true})
		var old keyRecord
		raw, ok, err := db.Get(bucketTriggerKeys, place)
		if err == nil && ok {
			err = json.Unmarshal(raw, &old)
		}
		if err != nil {
			return err
		}
		if ok && old.Number == w.First && string(place) != string(d.key) {
			d.puts = append(d.puts, store.Put{Bucket: bucketTriggerKeys, Key: place, Delete: true})
		}
	}
	w.First++
	if w.OldestAt, place, err = at(w.First); place == nil {
		w.OldestAt = d.keyRec.At // it is on its way, so it is new
	}
	return err
}

// writeKey remembers what became of the fire with a key, one that is new or one
// that has waited.
func (d *draft) writeKey(key string, rec keyRecord) error {
	switch {
	case key == "" || d.t.gone:
		return nil
	case !d.waited:
		return d.addKey(key, rec, d.at)
	}
	before, ok, err := d.t.admitted(key)
	if err != nil || !ok {
		return err
	}
	// It keeps its place in the window: waiting does not make it newer.
	rec.Number, rec.At = before.Number, before.At
	d.key, d.keyRec = keyPlace(d.t.s.id, d.t.name, key), rec
	d.puts = append(d.puts, encodePut(bucketTriggerKeys, d.key, rec))
	return nil
}
