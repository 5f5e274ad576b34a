package repair

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// reportMissing reports what should exist and does not: revisions that a head
// counts, events within the log, and blobs that results name.
func (r *repair) reportMissing() error {
	if err := r.missingRevisions(); err != nil {
		return err
	}
	if err := r.missingEvents(); err != nil {
		return err
	}
	return r.db.Scan(r.opt.Layout.Results, nil, nil, false, func(_, value []byte) bool {
		r.noteBlobs(value)
		return true
	})
}

func (r *repair) missingRevisions() error {
	type head struct {
		ID       sentinels.ID `json:"id"`
		Revision int          `json:"revision"`
	}
	exists := map[string]bool{}
	var heads []head
	err := r.db.Scan(r.opt.Layout.Definitions, nil, nil, false, func(key, value []byte) bool {
		exists[string(key)] = true
		var h head
		if json.Unmarshal(value, &h) == nil && string(key) == string(h.ID) {
			heads = append(heads, h)
		}
		return true
	})
	for _, h := range heads {
		for n := max(1, h.Revision-r.opt.KeepRevisions+1); n <= h.Revision; n++ {
			if key := string(r.opt.Layout.RevisionKey(h.ID, n)); !exists[key] {
				r.report.Revisions = append(r.report.Revisions, key)
			}
		}
	}
	return err
}

func (r *repair) missingEvents() error {
	var first uint64
	n := 0
	err := r.db.Scan(r.opt.Layout.Events, nil, nil, false, func(key, value []byte) bool {
		if len(key) == 8 {
			var gap struct {
				Removed int `json:"removed"` // by the limits of the log, at this position and before it
			}
			if json.Unmarshal(value, &gap) == nil && gap.Removed > 0 {
				n += gap.Removed - 1
			}
			r.events = binary.BigEndian.Uint64(key)
			if first == 0 {
				first = r.events
			}
			n++
		}
		return true
	})
	if err == nil && n > 0 {
		r.report.Events = max(0, int(r.events-first)+1-n) // the oldest position may stand for removed ones before it
	}
	return err
}

// blobName matches the digest in a value that is a blob. A value of the user that
// looks the same matches too: then a blob is reported that never existed.
var blobName = lazyregexp.New(`"b":"([0-9a-f]{64})"`)

// noteBlobs reports the blobs that a record names and that do not exist. Their
// content is checked when they are read.
func (r *repair) noteBlobs(raw []byte) {
	for _, m := range blobName.FindAllSubmatch(raw, -1) {
		digest := string(m[1])
		if r.blobs[digest] {
			continue
		}
		r.blobs[digest] = true
		if _, err := os.Stat(filepath.Join(r.opt.Dir, "blobs", digest[:2], digest[2:])); err != nil {
			r.report.Blobs = append(r.report.Blobs, digest)
		}
	}
}
