package runtime

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// The buckets of triggers. Every key begins with the sentinel's id and a zero
// byte, so that all that belongs to a sentinel is found by its prefix.
const (
	bucketTriggers       = "triggers"       // name -> triggerRecord; no name -> sentinelRecord
	bucketTriggerKeys    = "triggerkeys"    // see trigger_keys.go
	bucketTriggerPending = "triggerpending" // name -> pendingFire, while it waits for quiet
	bucketTriggerQueue   = "triggerqueue"   // number -> queuedFire
)

// TriggerCounts are exact and survive restarts: they commit together with what
// they count. Every fire ends in one of Started, Skipped, Filtered, Debounced,
// Duplicates and Dropped, or waits still, so these and the Waiting of
// [TriggerInfo] always come to Fired.
type TriggerCounts struct {
	Fired      uint64 `json:"fired"`
	Started    uint64 `json:"started"`
	Queued     uint64 `json:"queued"` // those that had to wait in the queue, whatever came of them
	Skipped    uint64 `json:"skipped"`
	Filtered   uint64 `json:"filtered"`
	Debounced  uint64 `json:"debounced"` // whose place a later fire took
	Duplicates uint64 `json:"duplicates"`
	Dropped    uint64 `json:"dropped"`
	Missed     uint64 `json:"missed"` // occasions that never became a fire; not part of Fired
}

// A triggerRecord is what is kept of a trigger. It commits with every outcome.
type triggerRecord struct {
	Since    time.Time       `json:"since"`    // when it was armed for the first time
	Position uint64          `json:"position"` // of the log of events then
	State    json.RawMessage `json:"state,omitempty"`
	TriggerCounts
	LastFire    time.Time        `json:"lastFire,omitzero"`
	LastOutcome triggers.Outcome `json:"lastOutcome,omitempty"`
	LastRun     sentinels.RunID  `json:"lastRun,omitempty"`
	LastReason  string           `json:"lastReason,omitempty"`
	Keys        keyWindow        `json:"keys,omitzero"`
	Replays     keyWindow        `json:"replays,omitzero"`
	Read        readMark         `json:"read,omitzero"`
}

// A sentinelRecord is what is kept of all triggers of a sentinel together.
type sentinelRecord struct {
	Paused bool `json:"paused"`
}

func triggerPrefix(id sentinels.ID) []byte { return append([]byte(id), 0) }

func triggerKey(id sentinels.ID, name string) []byte { return append(triggerPrefix(id), name...) }

// encodePut is a Put of a value that cannot fail to encode: a failure is a fault
// of the program.
func encodePut(bucket string, key []byte, v any) store.Put {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Errorf("encode %s record: %w", bucket, err))
	}
	return store.Put{Bucket: bucket, Key: key, Value: b}
}

// triggerNames gives each trigger of a definition its name: the kind and a
// digest of what its author wrote. So edits of other parts keep a trigger's
// state, and an edited trigger is a new one. Equal ones are distinguished by a
// number, in order.
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

// typeOf is the kind that a trigger's name begins with.
func typeOf(name string) string { return name[:max(0, strings.LastIndexByte(name, '-'))] }

// canonicalTrigger is the same text for triggers that mean the same: keys are
// sorted, and white space and the order in the file do not count.
func canonicalTrigger(t sentinels.Trigger) []byte {
	raw, err := json.Marshal(t)
	if err != nil {
		panic(fmt.Errorf("encode trigger: %w", err)) // it was decoded from JSON
	}
	text, err := canonical(raw)
	if err != nil {
		panic(fmt.Errorf("encode trigger: %w", err))
	}
	return text
}

// readTriggers returns the records of a sentinel's triggers by name, and whether
// they are paused.
func (rt *Runtime) readTriggers(id sentinels.ID) (recs map[string]triggerRecord, paused bool, err error) {
	recs = map[string]triggerRecord{}
	prefix := triggerPrefix(id)
	var bad error
	err = rt.db.Scan(bucketTriggers, prefix, nil, false, func(key, value []byte) bool {
		name := string(key[len(prefix):])
		if name == "" {
			var own sentinelRecord
			bad = json.Unmarshal(value, &own)
			paused = own.Paused
			return bad == nil
		}
		var rec triggerRecord
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
	return recs, paused, err
}

// forgetTriggers deletes all that is kept of a sentinel's triggers, or of one of
// them if name is not empty; the queue belongs to the sentinel.
func (rt *Runtime) forgetTriggers(id sentinels.ID, name string) ([]store.Put, error) {
	var puts []store.Put
	if name != "" {
		puts = []store.Put{
			{Bucket: bucketTriggers, Key: triggerKey(id, name), Delete: true},
			{Bucket: bucketTriggerPending, Key: triggerKey(id, name), Delete: true},
		}
		err := rt.prefixed(bucketTriggerKeys, keyPrefix(id, name), &puts)
		return puts, err
	}
	for _, bucket := range []string{bucketTriggers, bucketTriggerKeys, bucketTriggerPending, bucketTriggerQueue} {
		if err := rt.prefixed(bucket, triggerPrefix(id), &puts); err != nil {
			return nil, err
		}
	}
	return puts, nil
}

// prefixed adds the deletion of every pair whose key begins with prefix.
func (rt *Runtime) prefixed(bucket string, prefix []byte, puts *[]store.Put) error {
	return rt.db.Scan(bucket, prefix, nil, false, func(key, _ []byte) bool {
		*puts = append(*puts, store.Put{Bucket: bucket, Key: append([]byte(nil), key...), Delete: true})
		return true
	})
}
