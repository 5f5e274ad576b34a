package runtime

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/sentinel-runtime/sentinel/runtime/internal/definition"
	"github.com/sentinel-runtime/sentinel/runtime/internal/document"
	"github.com/sentinel-runtime/sentinel/runtime/internal/eventlog"
	"github.com/sentinel-runtime/sentinel/runtime/internal/execution"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/maintenance/statefolder"
	"github.com/sentinel-runtime/sentinel/runtime/internal/runindex"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A FoundDefinition is a definition in a store that is not open.
type FoundDefinition struct {
	ID         sentinels.ID
	Revision   int             // 0 of one that is not stored by itself: it is of an edited or unnamed run
	Run        sentinels.RunID // has not ended and goes on with Definition; empty for the newest revision of a sentinel
	Definition json.RawMessage
}

// StoredDefinitions returns what the store of a state folder would execute: the newest revisions of its
// definitions, sorted by their ids, and then the other definitions that the journals of runs which have
// not ended name. It opens and changes nothing there: as [CheckStore] it reads the file itself, so
// that no content of the file can end the process. Pages that are damaged are left out; a definition or a
// record that cannot be read is an error, and so are more than 64 MiB of definitions.
func StoredDefinitions(ctx context.Context, dir string) (list []FoundDefinition, err error) {
	work, err := os.MkdirTemp("", "sentinel-definitions-")
	if err != nil {
		return nil, fmt.Errorf("read definitions of %q: %w", dir, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	found := foundDefinitions{dir: dir, seen: map[string]bool{}}
	_, err = store.Rebuild(ctx, filepath.Join(work, "store.db"), store.RebuildOptions{
		Damaged: filepath.Join(dir, "store.db"),
		Skip: []string{
			execution.BucketRuns, execution.BucketResults, execution.BucketStartKeys, execution.BucketSpent, runindex.Bucket,
			document.Bucket, document.BucketIndex, eventlog.Bucket, eventlog.BucketRuns,
		},
		Choose: func(run string, records []store.JournalRecord, _ bool, _ []store.JournalRecord) []store.JournalRecord {
			found.addRun(sentinels.RunID(run), records)
			return nil
		},
	})
	if err != nil {
		return nil, fmt.Errorf("read definitions of %q: %w", dir, err)
	}
	db, err := store.Open(ctx, work, store.Options{})
	if err != nil {
		return nil, statefolder.Error(dir, err)
	}
	ofRuns, heads := found.list, map[string]bool{}
	found.list = nil
	err = db.Scan(definition.Bucket, nil, nil, false, func(key, value []byte) bool {
		if !definition.IsHead(key) {
			return true
		}
		switch s, err := definition.Read(value); {
		case err != nil:
			found.unread = errors.Join(found.unread, fmt.Errorf("read definition %q: %w", key, err))
		case !s.Deleted:
			heads[digestOf(s.Definition)] = true
			found.list = append(found.list, FoundDefinition{ID: s.ID, Revision: s.Revision, Definition: s.Definition})
			found.size += len(s.Definition)
		}
		return found.size <= maxFound
	})
	for _, d := range ofRuns { // those that are a newest revision too are listed as that
		if !heads[digestOf(d.Definition)] {
			found.list = append(found.list, d)
		}
	}
	if found.size > maxFound {
		found.unread = errors.Join(found.unread, fmt.Errorf("it has more than %d MiB of definitions", maxFound>>20))
	}
	return found.list, errors.Join(err, found.unread, db.Close())
}

// maxFound is how many bytes of definitions [StoredDefinitions] lists at most, so that a store of others does not take
// the memory of the machine: many runs may name one text.
const maxFound = 64 << 20

// foundDefinitions collects the definitions of a store that is not open.
type foundDefinitions struct {
	dir    string
	list   []FoundDefinition
	seen   map[string]bool // digests of the texts in list
	size   int             // bytes in list
	unread error           // of what cannot be read
}

// addRun adds the definitions that the journal of a run names, none of a run that has ended.
func (f *foundDefinitions) addRun(run sentinels.RunID, records []store.JournalRecord) {
	before, size, unread := len(f.list), f.size, f.unread
	var id sentinels.ID
	for _, raw := range records {
		r, err := journal.Decode(raw.Record)
		if err != nil {
			f.unread = errors.Join(f.unread, fmt.Errorf("read the journal of run %s: %w", run, err))
			continue
		}
		switch {
		case r.RunStart != nil:
			id = r.RunStart.Sentinel
			f.named(run, r.RunStart.Definition, id, r.RunStart.Revision)
			for _, named := range slices.Sorted(maps.Keys(r.RunStart.Named)) {
				f.named(run, r.RunStart.Named[named], named, 0)
			}
		case r.IterationStart != nil:
			f.named(run, r.IterationStart.Definition, id, r.IterationStart.Revision)
		case r.IterationEnd != nil:
			f.named(run, r.IterationEnd.Definition, id, r.IterationEnd.Revision)
		case r.Signal != nil && r.Signal.Edit != nil:
			f.named(run, r.Signal.Edit.Definition, id, r.Signal.Edit.Revision)
		case r.RunEnd != nil:
			for _, d := range f.list[before:] {
				delete(f.seen, digestOf(d.Definition))
			}
			f.list, f.size, f.unread = f.list[:before], size, unread
			return
		}
	}
}

// digestOf returns the digest of a text as records name blobs.
func digestOf(text []byte) string { return fmt.Sprintf("%x", sha256.Sum256(text)) }

// named adds a definition that a record names, once for each text.
func (f *foundDefinitions) named(run sentinels.RunID, v journal.Value, id sentinels.ID, revision int) {
	text := v.JSON
	if v.Blob != nil {
		if f.seen[v.Digest] || f.size > maxFound {
			return
		}
		var err error
		if text, err = store.ReadBlob(f.dir, v.Digest); err != nil {
			f.unread = errors.Join(f.unread, fmt.Errorf("read the definition of run %s: %w", run, err))
			return
		}
	}
	if digest := digestOf(text); len(text) > 0 && !f.seen[digest] && f.size <= maxFound {
		f.seen[digest] = true
		f.size += len(text)
		f.list = append(f.list, FoundDefinition{ID: id, Revision: revision, Run: run, Definition: text})
	}
}
