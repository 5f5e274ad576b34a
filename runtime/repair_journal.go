package runtime

import (
	"os"
	"path/filepath"
	"regexp"

	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A journalOrigin is what a repair knows of a run's journal that it keeps.
type journalOrigin struct {
	fromBase bool
	cut      bool // records behind the last one may be missing
	last     uint64
	hole     bool   // retention took what lay between the first record and the rest
	snapshot uint64 // place of the newest end of an iteration, 0 for none
	passes   int    // number of the newest iteration
	first    *journal.Record
	newest   *journal.Record
}

// ended returns how the run ended, nil if it is not over.
func (o *journalOrigin) ended() *journal.RunEndBody { return o.newest.RunEnd }

// of reports whether the journal can be that of the run whose key it has: a run
// at the root of its tree names itself.
func (o *journalOrigin) of(run string) bool {
	begin := o.first.RunStart
	return begin.Parent != "" || string(begin.Root) == run
}

// goesOn reports whether the run can be restored: from its beginning, or from
// the end of an iteration.
func (o *journalOrigin) goesOn() bool { return !o.hole || o.snapshot > 0 }

// readPrefix returns the records of a journal up to the first that is not what
// was written or does not follow the one before, and their state. Behind
// the first record there may be a hole: retention leaves one, and a run needs
// nothing of what lies before the end of its newest iteration.
func readPrefix(records []store.JournalRecord) (kept []store.JournalRecord, o *journalOrigin) {
	for i, raw := range records {
		rec, err := journal.Decode(raw.Record)
		if err != nil {
			break
		}
		switch {
		case i == 0:
			if raw.Seq != 1 || rec.Kind != journal.RunStart {
				return nil, nil
			}
			o = &journalOrigin{first: rec}
		case raw.Seq == o.last+1:
		case i == 1:
			o.hole = true
		default:
			return records[:i], o
		}
		o.last, o.newest = raw.Seq, rec
		switch rec.Kind {
		case journal.IterationStart:
			o.passes = rec.IterationStart.Iteration
		case journal.IterationEnd:
			o.snapshot = raw.Seq
		}
		kept = records[:i+1]
	}
	return kept, o
}

// choose is the rule for journals: entirely from one source, the one that reaches
// further.
func (j *repairs) choose(run string, damaged []store.JournalRecord, whole bool, base []store.JournalRecord) []store.JournalRecord {
	kept, o := readPrefix(damaged)
	if o != nil && !o.of(run) {
		kept, o = nil, nil
	}
	if o != nil {
		o.cut = !whole || len(kept) < len(damaged)
	}
	// Both are beginnings of the same history, so the longer one has all that
	// the shorter one has. Of two of the same length the store's own is taken:
	// whether it may have had more is known there.
	if older, from := readPrefix(base); from != nil && (o == nil || from.last > o.last) {
		kept, o = older, from
		o.fromBase, o.cut = true, true
	}
	// Without its first record it is unknown what the run is a run of.
	if o == nil {
		return nil
	}
	if o.newest.RunEnd != nil {
		o.cut = false // nothing comes behind the end
	}
	j.origin[sentinels.RunID(run)] = o
	for _, raw := range kept {
		j.noteCursors(raw.Record)
		j.noteBlobs(raw.Record)
	}
	return kept
}

// noteCursors remembers how far in the log of events any run has come.
func (j *repairs) noteCursors(raw []byte) {
	rec, err := journal.Decode(raw)
	if err != nil {
		return // readPrefix has decoded it
	}
	// Whatever keeps a place in the log keeps it in one of these.
	at := uint64(0)
	switch {
	case rec.RunStart != nil:
		at = rec.RunStart.EventCursor
	case rec.IterationStart != nil:
		at = rec.IterationStart.EventSeq
	case rec.CallStart != nil:
		at = rec.CallStart.Cursor
	case rec.CallEnd != nil:
		at = rec.CallEnd.EventSeq
	case rec.IterationEnd != nil:
		for _, n := range rec.IterationEnd.Cursors {
			at = max(at, n)
		}
	}
	j.cursor = max(j.cursor, at)
}

// blobName finds digests where a value names its blob. A value of the user
// that looks the same is found too: then a blob is reported that never was.
var blobName = regexp.MustCompile(`"b":"([0-9a-f]{64})"`)

// noteBlobs looks whether the blobs that a record names are there. Their
// content is checked when they are read.
func (j *repairs) noteBlobs(raw []byte) {
	for _, m := range blobName.FindAllSubmatch(raw, -1) {
		digest := string(m[1])
		if j.seen[digest] {
			continue
		}
		if j.seen == nil {
			j.seen = map[string]bool{}
		}
		j.seen[digest] = true
		if _, err := os.Stat(filepath.Join(j.blobs, digest[:2], digest[2:])); err != nil {
			j.report.Blobs = append(j.report.Blobs, digest)
		}
	}
}
