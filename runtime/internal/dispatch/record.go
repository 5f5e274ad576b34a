package dispatch

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/eventlog"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/trigger"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// The buckets of triggers. Every key begins with the sentinel's id and a zero
// byte, so a prefix finds all that belongs to a sentinel.
const (
	bucketTriggers = "triggers"       // name -> record; no name -> sentinelRecord
	bucketKeys     = "triggerkeys"    // see keys.go
	bucketPending  = "triggerpending" // name -> pendingFiring; name, number -> keptFiring, while they are debounced
	bucketQueue    = "triggerqueue"   // number -> queuedFiring
)

// Buckets returns the names of the buckets of the store that the package uses.
func Buckets() []string { return []string{bucketTriggers, bucketKeys, bucketPending, bucketQueue} }

// A record is what is stored of a trigger. Each outcome commits a new one.
type record struct {
	Since    time.Time       `json:"since"`          // when it was armed for the first time
	Position uint64          `json:"position"`       // of the event log then; for patterns of both logs that of events that are not of runs
	Runs     uint64          `json:"runs,omitempty"` // for patterns of both logs: that of events of runs
	Hops     int             `json:"hops,omitempty"` // length of the chain of the run that made the trigger, see made
	Path     []string        `json:"path,omitempty"`
	State    json.RawMessage `json:"state,omitempty"`
	trigger.Counts
	LastFire    time.Time        `json:"lastFire,omitzero"`
	LastOutcome triggers.Outcome `json:"lastOutcome,omitempty"`
	LastRun     sentinels.RunID  `json:"lastRun,omitempty"`
	LastReason  string           `json:"lastReason,omitempty"`
	Keys        keyWindow        `json:"keys,omitzero"`
	Replays     keyWindow        `json:"replays,omitzero"`
	Read        readMark         `json:"read,omitzero"`
	ReadRuns    readMark         `json:"readRuns,omitzero"` // for patterns of both logs
	Expected    expectation      `json:"expected,omitzero"`
	Skips       trigger.Skips    `json:"skips,omitzero"`
}

// chain is that of the run that made the trigger, empty for none.
func (r record) chain() eventlog.Chain { return eventlog.Chain{Hops: r.Hops, Path: r.Path} }

// read returns the mark of a log, as [sentinels.PatternsByLog] counts them.
func (r *record) read(log int) *readMark {
	if log == 0 {
		return &r.Read
	}
	return &r.ReadRuns
}

// A sentinelRecord is what is stored of all triggers of a sentinel together.
type sentinelRecord struct {
	Paused bool      `json:"paused"`
	Until  time.Time `json:"until,omitzero"` // when the pause ends by itself, zero for never
	By     string    `json:"by,omitempty"`   // empty in records of earlier versions
}

// over reports whether the pause has ended by itself.
func (r sentinelRecord) over(now time.Time) bool {
	return r.Paused && !r.Until.IsZero() && !r.Until.After(now)
}

func sentinelPrefix(id sentinels.ID) []byte { return append([]byte(id), 0) }

func triggerKey(id sentinels.ID, name string) []byte { return append(sentinelPrefix(id), name...) }

// encodePut returns a Put of a value that cannot fail to encode: a failure is a
// programming error.
func encodePut(bucket string, key []byte, v any) store.Put {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Errorf("encode %s record: %w", bucket, err))
	}
	return store.Put{Bucket: bucket, Key: key, Value: b}
}

// triggerNames returns the name of each trigger of a definition: its kind and a
// digest of what its author wrote. So edits of other parts keep a trigger's state,
// and an edited trigger is a new one. Equal triggers get a number, in order.
func triggerNames(list []sentinels.Trigger) []string {
	names := make([]string, len(list))
	seen := map[string]int{}
	for i, t := range list {
		sum := sha256.Sum256(canonicalTrigger(t))
		name := t.Type + "-" + hex.EncodeToString(sum[:4])
		if seen[name]++; seen[name] > 1 {
			name = fmt.Sprintf("%s#%d", name, seen[name])
		}
		names[i] = name
	}
	return names
}

// typeOf returns the kind of the trigger with a name.
func typeOf(name string) string { return name[:max(0, strings.LastIndexByte(name, '-'))] }

// canonicalTrigger returns the same text for triggers with the same meaning: keys
// are sorted and there is no white space.
func canonicalTrigger(t sentinels.Trigger) []byte {
	raw, err := json.Marshal(t)
	if err != nil {
		panic(fmt.Errorf("encode trigger: %w", err)) // it was decoded from JSON
	}
	text, err := sentinels.Canonical(raw)
	if err != nil {
		panic(fmt.Errorf("encode trigger: %w", err))
	}
	return text
}

// readRecords returns the records of a sentinel's triggers by name, and the one of all of them.
func (d *Dispatcher) readRecords(id sentinels.ID) (recs map[string]record, all sentinelRecord, err error) {
	recs = map[string]record{}
	prefix := sentinelPrefix(id)
	var bad error
	err = d.opt.Store.Scan(bucketTriggers, prefix, nil, false, func(key, value []byte) bool {
		name := string(key[len(prefix):])
		if name == "" {
			bad = json.Unmarshal(value, &all)
			return bad == nil
		}
		var rec record
		if bad = json.Unmarshal(value, &rec); bad == nil {
			recs[name] = rec
		}
		return bad == nil
	})
	if err == nil {
		err = bad
	}
	if err != nil {
		err = fmt.Errorf("read triggers of %q: %w", id, err)
	}
	return recs, all, err
}

// forgetTrigger returns the writes that delete all that is stored of one trigger.
// What it has in the queue stays: the queue belongs to the sentinel.
func (d *Dispatcher) forgetTrigger(id sentinels.ID, name string) ([]store.Put, error) {
	d.mu.Lock()
	delete(d.refused, string(triggerKey(id, name)))
	d.mu.Unlock()
	puts := []store.Put{
		{Bucket: bucketTriggers, Key: triggerKey(id, name), Delete: true},
		{Bucket: bucketPending, Key: triggerKey(id, name), Delete: true},
	}
	err := d.deletePrefix(bucketPending, append(triggerKey(id, name), 0), &puts)
	if err == nil {
		err = d.deletePrefix(bucketKeys, keyPrefix(id, name), &puts)
	}
	return puts, err
}

// forgetSentinel returns the writes that delete all that is stored of the triggers
// of a sentinel.
func (d *Dispatcher) forgetSentinel(id sentinels.ID) (puts []store.Put, err error) {
	d.mu.Lock()
	delete(d.ended, id)
	maps.DeleteFunc(d.refused, func(key string, _ *trigger.Requests) bool { return strings.HasPrefix(key, string(sentinelPrefix(id))) })
	d.mu.Unlock()
	for _, bucket := range Buckets() {
		if err := d.deletePrefix(bucket, sentinelPrefix(id), &puts); err != nil {
			return nil, err
		}
	}
	return puts, nil
}

// deletePrefix adds the deletion of every pair whose key begins with prefix.
func (d *Dispatcher) deletePrefix(bucket string, prefix []byte, puts *[]store.Put) error {
	return d.opt.Store.Scan(bucket, prefix, nil, false, func(key, _ []byte) bool {
		*puts = append(*puts, store.Put{Bucket: bucket, Key: append([]byte(nil), key...), Delete: true})
		return true
	})
}
