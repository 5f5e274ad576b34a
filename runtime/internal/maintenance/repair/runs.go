package repair

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// pausedBy is who paused a run, for its journal.
const pausedBy = "recover"

// mendRun returns the batch that makes a summary agree with the journal that is
// kept, and whether there is anything to write. j is nil if no journal is kept. A
// summary that was made from the journal is always written.
func (r *repair) mendRun(s summary, j *keptJournal) (b store.Batch, changed bool) {
	fresh := slices.Contains(r.report.Runs.Rebuilt, s.ID)
	if j == nil && s.Status.Final() {
		r.report.Runs.Whole++ // retention may have removed its journal
		return b, fresh
	}
	if !s.Status.Final() && (j == nil || !j.Complete() && j.End == nil) {
		return r.lose(s), true
	}
	r.count(s.ID, j, fresh)
	// The summary and the journal are written in one commit. If they differ, one of
	// them is older, and the journal counts.
	if j.End != nil && !s.Status.Final() {
		s.Status, s.Error, s.Limit, s.Step = j.End.Status, j.End.Error, j.End.Limit, j.End.Step
		s.EndedBy, s.EndedPause, s.EndedQuestion = j.End.By, j.End.PausedBy, string(j.End.Asked)
		s.EndedAt, s.Decisions = microTime(j.Newest), nil
		return r.put(s), true
	}
	// A run that has ended executes nothing, even if a part of its journal is
	// missing. That part is missing in its trace.
	if s.Status.Final() {
		return r.put(s), fresh
	}
	moved := s.Snapshot != j.Snapshot
	s.Snapshot = j.Snapshot
	if !j.cut && !r.unsure && !r.older[s.ID] && !fresh {
		return r.put(s), moved
	}
	return r.pause(s, j), true
}

// count reports the run once, by the worst that is known of it.
func (r *repair) count(id sentinels.RunID, j *keptJournal, fresh bool) {
	runs := &r.report.Runs
	switch {
	case j.fromBase:
		runs.FromSnapshot = append(runs.FromSnapshot, id)
	case j.cut:
		runs.Cut = append(runs.Cut, id)
	case !fresh:
		runs.Whole++
	}
}

// lose returns the batch that fails a run that cannot continue.
func (r *repair) lose(s summary) store.Batch {
	r.report.Runs.Lost = append(r.report.Runs.Lost, s.ID)
	s.Status, s.EndedAt, s.Decisions = sentinels.StatusFailed, time.Now().UTC(), nil
	s.Error = &abi.Error{Code: abi.Internal, Permanent: true, Message: "the store was damaged and the run's journal is lost", Hint: "start the sentinel again"}
	return r.put(s)
}

// pause returns the batch that pauses a run whose newest records may be missing.
// It has no pending decisions: it asks again when it comes to that step.
func (r *repair) pause(s summary, j *keptJournal) store.Batch {
	r.report.Runs.Paused = append(r.report.Runs.Paused, s.ID)
	s.Status, s.Limit, s.Decisions = sentinels.StatusPaused, "", nil
	s.Reason = "the store was repaired and the run's last records may be missing: what they recorded would be done again"
	s.Iteration, s.UpdatedAt = j.Iteration, time.Now().UTC()
	rec, err := journal.Encode(&journal.Record{
		Kind: journal.Status, Time: s.UpdatedAt.UnixMicro(), Elapsed: j.Elapsed,
		Status: &journal.StatusBody{Status: s.Status, Reason: s.Reason, By: pausedBy},
	})
	if err != nil {
		panic(err) // plain fields
	}
	b := r.put(s)
	b.Appends = []store.Append{{Run: string(s.ID), Seq: j.Seq + 1, Record: rec}}
	return b
}

// put returns the batch that writes a summary.
func (r *repair) put(s summary) store.Batch {
	value, err := json.Marshal(s)
	if err != nil {
		panic(err) // plain fields, which were decoded before
	}
	return store.Batch{Puts: []store.Put{{Bucket: r.opt.Layout.Runs, Key: []byte(s.ID), Value: value}}}
}
