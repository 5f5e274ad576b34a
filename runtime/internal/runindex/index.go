package runindex

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Bucket has the entries of the index.
const Bucket = "runindex"

// The keys of the entries. Run ids are UUIDs of version 7: their order is that of the
// starts.
const (
	indexVersion  = "version" // key of the version; its presence means that every run is indexed
	indexLive     = "l/"      // + run: it is not over
	indexSentinel = "s/"      // + sentinel + "/" + run
	indexParent   = "p/"      // + parent + "/" + run
)

// Options are what the index needs of the engine. All are required.
type Options struct {
	Store     Store
	Summaries string // bucket of the summaries: run id -> [run.Info]
	Project   Project
	// Active returns the present summary of a run that this process executes.
	Active func(sentinels.RunID) (info run.Info, active bool)
	// Starting returns the summaries of the runs whose start is on its way to the
	// store, in any order.
	Starting func() []run.Info
}

// Store is the part of the store that the index uses.
type Store interface {
	Get(bucket string, key []byte) ([]byte, bool, error)
	Scan(bucket string, prefix, after []byte, reverse bool, fn func(key, value []byte) bool) error
	Enqueue(b store.Batch) *store.Ticket
}

// Index is the index of the runs of a store.
//
// # Concurrency
//
// All methods are safe for concurrent use, [Index.Open] excepted, which comes first.
type Index struct {
	opt       Options
	unindexed atomic.Bool // the store has no run yet, and no version
	totals    totals
	held      held
}

// New makes the index of a store. It reads nothing yet, see [Index.Open].
func New(opt Options) *Index { return &Index{opt: opt} }

func indexKey(parts ...string) []byte { return []byte(strings.Join(parts, "")) }

// StartPuts returns the entries of a run that begins.
func (x *Index) StartPuts(info run.Info) []store.Put {
	puts := runEntries(info)
	if x.unindexed.Swap(false) {
		puts = append(puts, store.Put{Bucket: Bucket, Key: []byte(indexVersion), Value: []byte("1")})
	}
	return puts
}

func runEntries(info run.Info) []store.Put {
	put := func(parts ...string) store.Put {
		return store.Put{Bucket: Bucket, Key: indexKey(parts...), Value: []byte{1}}
	}
	puts := []store.Put{put(indexSentinel, string(info.Sentinel), "/", string(info.ID))}
	if info.Parent != "" {
		puts = append(puts, put(indexParent, string(info.Parent), "/", string(info.ID)))
	}
	if !info.Status.Final() {
		puts = append(puts, put(indexLive, string(info.ID)))
	}
	return puts
}

// EndPut takes a run out of those that are not over.
func EndPut(id sentinels.RunID) store.Put {
	return store.Put{Bucket: Bucket, Key: indexKey(indexLive, string(id)), Delete: true}
}

// ForgetPuts take a run out of the index: its id, sentinel, parent and status count.
func ForgetPuts(info run.Info) []store.Put {
	puts := runEntries(info)
	for i := range puts {
		puts[i].Delete, puts[i].Value = true, nil
	}
	return puts
}

// Open indexes the runs of a store that has no index. It waits until that is durable,
// or ctx ends. A summary that cannot be read has no entries; lists name it all the
// same when they look at every run.
func (x *Index) Open(ctx context.Context) error {
	if _, ok, err := x.opt.Store.Get(Bucket, []byte(indexVersion)); err != nil || ok {
		return err
	}
	const most = 2_000 // entries a commit
	var b store.Batch
	var last *store.Ticket
	err := x.opt.Store.Scan(x.opt.Summaries, nil, nil, false, func(_, value []byte) bool {
		var info run.Info
		if json.Unmarshal(value, &info) != nil {
			return true
		}
		if b.Puts = append(b.Puts, runEntries(info)...); len(b.Puts) >= most {
			last, b = x.opt.Store.Enqueue(b), store.Batch{}
		}
		return true
	})
	if err != nil {
		return fmt.Errorf("index runs: %w", err)
	}
	if last == nil && len(b.Puts) == 0 {
		x.unindexed.Store(true) // a new store: its first run writes the version
		return nil
	}
	b.Puts = append(b.Puts, store.Put{Bucket: Bucket, Key: []byte(indexVersion), Value: []byte("1")})
	if err := x.opt.Store.Enqueue(b).Wait(ctx); err != nil {
		return fmt.Errorf("index runs: %w", err)
	}
	return nil
}

// Unfinished calls fn with the ids of the stored runs that are not over, the newest
// first, until fn returns false.
func (x *Index) Unfinished(fn func(sentinels.RunID) bool) error { return x.indexed(indexLive, "", fn) }

// indexed calls fn with the runs that an index lists under prefix, the newest
// first and older than before if that is set.
func (x *Index) indexed(prefix string, before sentinels.RunID, fn func(sentinels.RunID) bool) error {
	var after []byte
	if before != "" {
		after = indexKey(prefix, string(before))
	}
	return x.opt.Store.Scan(Bucket, []byte(prefix), after, true, func(key, _ []byte) bool {
		return fn(sentinels.RunID(key[len(prefix):]))
	})
}

// Stored reads a stored summary; found is false for a run that is not there. For one
// that cannot be read, found is true and err is set.
func (x *Index) Stored(id sentinels.RunID) (info run.Info, found bool, err error) {
	raw, found, err := x.opt.Store.Get(x.opt.Summaries, []byte(id))
	if err != nil || !found {
		return info, false, err
	}
	if err := x.opt.Project.Decode(raw, &info); err != nil {
		return run.Info{ID: id}, true, fmt.Errorf("read run %s: %w", id, err)
	}
	return info, true, nil
}

// startTime is when a run's id was made, in whole milliseconds; zero for an id
// that does not say.
func startTime(id sentinels.RunID) time.Time {
	var b [8]byte
	digits := strings.ReplaceAll(string(id), "-", "")
	if len(digits) != 32 || digits[12] != '7' {
		return time.Time{}
	}
	if _, err := hex.Decode(b[2:], []byte(digits[:12])); err != nil {
		return time.Time{}
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(b[:]))) //nolint:gosec // 48 bits
}
