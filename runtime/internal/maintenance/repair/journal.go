package repair

import (
	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A keptJournal is the journal of a run that the repair keeps.
type keptJournal struct {
	history.Extent
	fromBase bool // it is from the snapshot
	cut      bool // records may be missing after the newest one
}

// belongsTo reports whether the journal can be that of the run whose key it has: a
// run without a parent is the root of its tree.
func (j *keptJournal) belongsTo(run string) bool {
	return j.Start.Parent != "" || string(j.Start.Root) == run
}

// readPrefix returns the records of a journal before the first that cannot be
// decoded or applied, and their summary. There may be a hole after the first
// record: retention leaves one. It returns nil if the first record is missing.
func readPrefix(records []store.JournalRecord) (kept []store.JournalRecord, j *keptJournal) {
	j = &keptJournal{}
	for i, raw := range records {
		rec, err := journal.Decode(raw.Record)
		if err == nil {
			err = j.Apply(raw.Seq, rec)
		}
		switch {
		case err == nil:
		case i == 0:
			return nil, nil
		default:
			return readPrefix(records[:i]) // a state is not to be used after an error
		}
	}
	if j.Seq == 0 {
		return nil, nil
	}
	return records, j
}

// choose returns the journal of a run to keep: all records are from one source, the
// one that reaches further.
func (r *repair) choose(run string, damaged []store.JournalRecord, intact bool, base []store.JournalRecord) []store.JournalRecord {
	kept, j := readPrefix(damaged)
	if j != nil && !j.belongsTo(run) {
		kept, j = nil, nil
	}
	if j != nil {
		j.cut = !intact || len(kept) < len(damaged)
	}
	// Both begin the same history, so the longer one has all records of the shorter
	// one. If both have the same length, the store's own is kept, because it is
	// known whether that one may be cut.
	if older, from := readPrefix(base); from != nil && (j == nil || from.Seq > j.Seq) {
		kept, j = older, from
		j.fromBase, j.cut = true, true
	}
	// Without its first record it is unknown which sentinel the run is of.
	if j == nil {
		return nil
	}
	if j.End != nil {
		j.cut = false // nothing follows the end
	}
	r.journals[sentinels.RunID(run)] = j
	r.offset = max(r.offset, j.EventOffset)
	for _, raw := range kept {
		r.noteBlobs(raw.Record)
	}
	return kept
}
