package runtime

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// The index of runs finds some of them without reading all. Its entries are
// written in the commits that make them true, so it never disagrees with the
// summaries. Run ids are UUIDs of version 7: their order is that of the starts.
const (
	indexVersion  = "version" // key whose value says that every run is indexed
	indexLive     = "l/"      // + run: it is not over
	indexSentinel = "s/"      // + sentinel + "/" + run
	indexParent   = "p/"      // + parent + "/" + run
)

func indexKey(parts ...string) []byte { return []byte(strings.Join(parts, "")) }

// indexPuts are the entries of a run that begins.
func (rt *Runtime) indexPuts(info RunInfo) []store.Put {
	puts := runEntries(info)
	if rt.unindexed.Swap(false) {
		puts = append(puts, store.Put{Bucket: bucketRunIndex, Key: []byte(indexVersion), Value: []byte("1")})
	}
	return puts
}

func runEntries(info RunInfo) []store.Put {
	put := func(parts ...string) store.Put {
		return store.Put{Bucket: bucketRunIndex, Key: indexKey(parts...), Value: []byte{1}}
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

// overPut takes a run out of those that are not over.
func overPut(id sentinels.RunID) store.Put {
	return store.Put{Bucket: bucketRunIndex, Key: indexKey(indexLive, string(id)), Delete: true}
}

// forgetPuts takes a run out of the index.
func forgetPuts(info RunInfo) []store.Put {
	puts := runEntries(info)
	for i := range puts {
		puts[i].Delete, puts[i].Value = true, nil
	}
	return puts
}

// indexRuns indexes the runs of a store that was written before there was an
// index. A summary that cannot be read has no entries; lists name it all the
// same when they look at every run.
func (rt *Runtime) indexRuns() error {
	if _, ok, err := rt.db.Get(bucketRunIndex, []byte(indexVersion)); err != nil || ok {
		return err
	}
	const most = 2_000 // entries a commit
	var b store.Batch
	var last *store.Ticket
	err := rt.db.Scan(bucketRuns, nil, nil, false, func(_, value []byte) bool {
		var info RunInfo
		if json.Unmarshal(value, &info) != nil {
			return true
		}
		if b.Puts = append(b.Puts, runEntries(info)...); len(b.Puts) >= most {
			last, b = rt.db.Enqueue(b), store.Batch{}
		}
		return true
	})
	if err != nil {
		return fmt.Errorf("index runs: %w", err)
	}
	if last == nil && len(b.Puts) == 0 {
		rt.unindexed.Store(true) // a new store: its first run says so
		return nil
	}
	b.Puts = append(b.Puts, store.Put{Bucket: bucketRunIndex, Key: []byte(indexVersion), Value: []byte("1")})
	if err := rt.db.Enqueue(b).Wait(rt.ctx); err != nil {
		return fmt.Errorf("index runs: %w", err)
	}
	return nil
}

// indexed calls fn with the runs that an index lists under prefix, the newest
// first and older than before if that is set.
func (rt *Runtime) indexed(prefix string, before sentinels.RunID, fn func(sentinels.RunID) bool) error {
	var after []byte
	if before != "" {
		after = indexKey(prefix, string(before))
	}
	return rt.db.Scan(bucketRunIndex, []byte(prefix), after, true, func(key, _ []byte) bool {
		return fn(sentinels.RunID(key[len(prefix):]))
	})
}

// readInfo reads a stored summary; found is false for a run that is not there.
func (rt *Runtime) readInfo(id sentinels.RunID) (info RunInfo, found bool, err error) {
	raw, found, err := rt.db.Get(bucketRuns, []byte(id))
	if err != nil || !found {
		return info, false, err
	}
	if err := json.Unmarshal(raw, &info); err != nil {
		return RunInfo{ID: id}, true, fmt.Errorf("read run %s: %w", id, err)
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
