package runtime

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/definition"
	"github.com/sentinel-runtime/sentinel/runtime/internal/eventlog"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// repairs is one repair under way. It is used by one goroutine.
type repairs struct {
	report *RepairReport
	blobs  string
	origin map[sentinels.RunID]*journalOrigin
	cursor uint64 // the furthest place in the log of events that a run knows
	seen   map[string]bool

	older  map[sentinels.RunID]bool // summaries that are the snapshot's
	wary   bool                     // any run may have lost its newest records
	db     *store.DB
	events uint64 // the last place of the log
}

// pausedBy is who paused a run, for its history.
const pausedBy = "recover"

// make builds the new store in the folder work.
func (j *repairs) make(ctx context.Context, work, damaged, base string, back bool) error {
	if back {
		damaged = ""
	}
	done, err := store.Rebuild(ctx, filepath.Join(work, "store.db"), store.RebuildOptions{
		Damaged: damaged, Base: base, Skip: []string{bucketRunIndex}, Choose: j.choose,
	})
	if err != nil {
		return err
	}
	// With one head the newest commit may be missing as a whole, and no range of
	// keys would show it.
	j.wary = done.OneMeta || damaged == ""
	j.older = map[sentinels.RunID]bool{}
	for name, b := range done.Buckets {
		if name == bucketRuns {
			for _, key := range b.BaseKeys {
				j.older[sentinels.RunID(key)] = true
			}
		}
		if name != "journal" && name != "store" {
			j.report.Buckets = append(j.report.Buckets, RepairedBucket{Name: name, Salvaged: b.Salvaged, FromSnapshot: b.FromBase, Unreadable: b.Damaged, Whole: done.Intact(name)})
		}
	}
	slices.SortFunc(j.report.Buckets, func(a, b RepairedBucket) int { return strings.Compare(a.Name, b.Name) })
	// What follows is a matter of records and no more of pages, so it goes the
	// way that every other write goes.
	if j.db, err = store.Open(work, store.Options{}); err != nil {
		return err
	}
	return errors.Join(j.mend(ctx), j.db.Close())
}

// mend makes summaries and journals agree, and notes what is missing.
func (j *repairs) mend(ctx context.Context) error {
	var last *store.Ticket
	enqueue := func(b store.Batch) {
		b.Lazy = true
		last = j.db.Enqueue(b)
	}
	var infos []RunInfo
	err := j.db.Scan(bucketRuns, nil, nil, false, func(_, value []byte) bool {
		var info RunInfo
		if json.Unmarshal(value, &info) == nil { // the snapshot's are not looked at before
			infos = append(infos, info)
		}
		return true
	})
	if err != nil {
		return err
	}
	// First the runs that have a summary, then those that have only a journal.
	known := map[sentinels.RunID]bool{}
	for _, info := range infos {
		known[info.ID] = true
		if b, changed := j.mendRun(info, j.origin[info.ID]); changed {
			enqueue(b)
		}
	}
	for id, o := range j.origin {
		if known[id] {
			continue
		}
		j.report.Runs.Rebuilt = append(j.report.Runs.Rebuilt, id)
		b, changed := j.mendRun(infoOf(id, o), o)
		if !changed {
			continue
		}
		enqueue(b)
	}
	if err := j.countMissing(); err != nil {
		return err
	}
	// A run remembers how far it has read the log of events. If the end of the
	// log is lost, positions would be given a second time, and it would pass over
	// the current value.
	// Events that come from now on must lie behind what any run has seen.
	if j.events < j.cursor {
		e := sentinels.Event{ID: string(newRunID()), Name: "store:repaired", Time: time.Now().UTC()}
		value, err := json.Marshal(e)
		if err != nil {
			return err
		}
		enqueue(store.Batch{Puts: []store.Put{{Bucket: eventlog.Bucket, Key: eventlog.Key(j.cursor), Value: value}}})
	}
	r := &j.report.Runs
	for _, list := range [][]sentinels.RunID{r.FromSnapshot, r.Cut, r.Rebuilt, r.Lost, r.Paused} {
		slices.Sort(list)
	}
	slices.Sort(j.report.Blobs)
	if last == nil {
		return nil
	}
	return last.Wait(ctx)
}

// mendRun makes a summary agree with the journal that was kept; o is nil where
// there is none. A summary made again is always written.
func (j *repairs) mendRun(info RunInfo, o *journalOrigin) (b store.Batch, changed bool) {
	r := &j.report.Runs
	// At the end and not before: it writes info as the cases below leave it.
	put := func() store.Put {
		value, err := json.Marshal(info)
		if err != nil {
			panic(err) // plain fields, which were decoded before
		}
		return store.Put{Bucket: bucketRuns, Key: []byte(info.ID), Value: value}
	}
	fresh := slices.Contains(r.Rebuilt, info.ID)
	switch {
	case o == nil && info.Status.Final():
		r.Whole++ // retention may have taken its journal
		return b, fresh
	case o == nil, !o.goesOn() && o.ended() == nil && !info.Status.Final():
		r.Lost = append(r.Lost, info.ID)
		info.Status, info.EndedAt, info.Asks = sentinels.StatusFailed, time.Now().UTC(), nil
		info.Error = &abi.Error{Code: abi.Internal, Permanent: true, Message: "the store was damaged and the run's journal is lost", Hint: "start the sentinel again"}
		return store.Batch{Puts: []store.Put{put()}}, true
	}
	// Each run is counted once, by the worst that is known of it.
	switch {
	case o.fromBase:
		r.FromSnapshot = append(r.FromSnapshot, info.ID)
	case o.cut:
		r.Cut = append(r.Cut, info.ID)
	case !fresh:
		r.Whole++
	}
	// The journal is the truth and the summary its shadow: they are written in
	// one commit, so where they differ one of the two is of another time.
	if end := o.ended(); end != nil && !info.Status.Final() {
		info.Status, info.Error, info.Limit, info.Step = end.Status, end.Error, end.Limit, end.Step
		info.EndedAt, info.Asks = microTime(o.newest.Time).UTC(), nil
		return store.Batch{Puts: []store.Put{put()}}, true
	}
	// A run that is over does nothing any more, however much of its journal is
	// gone: what is missing is missing in its trace.
	if info.Status.Final() {
		return store.Batch{Puts: []store.Put{put()}}, fresh
	}
	moved := info.Snapshot != o.snapshot
	info.Snapshot = o.snapshot
	if !o.cut && !j.wary && !j.older[info.ID] && !fresh {
		return store.Batch{Puts: []store.Put{put()}}, moved
	}
	// From here on its last records may be missing. Nothing that it asked of a
	// person still stands: it will ask again when it comes there.
	r.Paused = append(r.Paused, info.ID)
	info.Status, info.Limit, info.Asks = sentinels.StatusPaused, "", nil
	info.Reason = "the store was repaired and the run's last records may be missing: what they recorded would be done again"
	info.Iteration, info.UpdatedAt = o.passes, time.Now().UTC()
	rec, err := journal.Encode(&journal.Record{
		Kind: journal.Status, Time: info.UpdatedAt.UnixMicro(), Elapsed: o.newest.Elapsed,
		Status: &journal.StatusBody{Status: info.Status, Reason: info.Reason, By: pausedBy},
	})
	if err != nil {
		panic(err) // plain fields
	}
	return store.Batch{Appends: []store.Append{{Run: string(info.ID), Seq: o.last + 1, Record: rec}}, Puts: []store.Put{put()}}, true
}

// infoOf makes a summary from a journal.
func infoOf(id sentinels.RunID, o *journalOrigin) RunInfo {
	begin := o.first.RunStart
	return RunInfo{
		ID: id, Sentinel: begin.Sentinel, Name: string(begin.Sentinel), Status: sentinels.StatusRunning, Revision: begin.Revision, Hash: begin.Hash,
		Workspace: begin.Workspace, Parent: begin.Parent, Root: begin.Root, Iteration: o.passes, Elapsed: o.newest.Elapsed / 1000,
		CreatedAt: microTime(o.first.Time).UTC(), UpdatedAt: microTime(o.newest.Time).UTC(), Snapshot: o.snapshot,
	}
}

// countMissing names what should be there and is not: revisions that a head
// counts, and events in the middle of the log.
func (j *repairs) countMissing() error {
	there := map[string]bool{}
	var heads []Stored
	err := j.db.Scan(definition.Bucket, nil, nil, false, func(key, value []byte) bool {
		if s, err := definition.Read(value); err == nil && definition.IsHead(key) {
			s.Definition = nil
			heads = append(heads, s)
		}
		there[string(key)] = true
		return true
	})
	if err != nil {
		return err
	}
	// The default, because the setting of the host is unknown here: with a
	// smaller number some would be named that were dropped on purpose.
	keep := Limits{}.withDefaults().KeepRevisions
	for _, head := range heads {
		for n := max(1, head.Revision-keep+1); n <= head.Revision; n++ {
			if key := string(definition.Key(head.ID, n)); !there[key] {
				j.report.Revisions = append(j.report.Revisions, key)
			}
		}
	}
	var first uint64
	n := 0
	err = j.db.Scan(eventlog.Bucket, nil, nil, false, func(key, _ []byte) bool {
		if len(key) == 8 {
			j.events = binary.BigEndian.Uint64(key)
			if first == 0 {
				first = j.events
			}
			n++
		}
		return true
	})
	if err == nil && n > 0 {
		j.report.Events = int(j.events-first) + 1 - n
	}
	if err != nil {
		return err
	}
	return j.db.Scan(bucketResults, nil, nil, false, func(_, value []byte) bool { j.noteBlobs(value); return true })
}
