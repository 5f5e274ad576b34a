package runtime

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// An Incoming definition comes from another store.
type Incoming struct {
	// Definition is what it is now; it must come from [Runtime.Decode].
	Definition *sentinels.Definition
	// History are its revisions, the oldest first; the last one holds
	// Definition. It becomes the history here if the id was never used here:
	// numbers, times, authors and notes are kept, origins are not, for they are
	// paths of another machine. Default: Definition is a revision of its own.
	History []Stored
	// Expect is the revision that is there, as in [SaveOptions].
	Expect int
}

// An Imported definition says what became of an [Incoming] one.
type Imported struct {
	Stored
	Changed   bool // there is a new revision
	Revisions int  // how many came: 0 if it was there already, more than 1 only with its history
}

// maxImport bounds the bytes of one import: it is one commit, and all of it is
// in memory at once.
const maxImport = 64 << 20

// Import stores definitions of another store, all of them in one commit or none.
// It returns, in the order of in, when that is durable. opt says by whom and why
// for those that bring no history; its other fields are not used.
//
// What is like the definition that is there already changes nothing.
func (rt *Runtime) Import(ctx context.Context, in []Incoming, opt SaveOptions) ([]Imported, error) {
	if err := rt.writable(); err != nil {
		return nil, err
	}
	var b store.Batch
	var size int
	out := make([]Imported, 0, len(in))
	// Two of one id would overtake each other within the commit, and which of
	// them wins would depend on their order.
	seen := map[sentinels.ID]bool{}
	for _, one := range in {
		id := one.Definition.ID
		if seen[id] {
			return nil, errf(abi.BadFields, "import definition %q: it is there twice", id)
		}
		seen[id] = true
		done, puts, err := rt.importOne(one, opt)
		if err != nil {
			return nil, err
		}
		out = append(out, done)
		b.Puts = append(b.Puts, puts...)
		for _, p := range puts {
			size += len(p.Value)
		}
	}
	if size > maxImport {
		return nil, &abi.Error{Code: abi.Limit, Message: fmt.Sprintf("import definitions: they have %d bytes, more than %d", size, maxImport),
			Hint: "import them in parts, or without their history"}
	}
	// All of it was there already: there is nothing to wait for or to publish.
	if len(b.Puts) == 0 {
		return out, nil
	}
	ticket := rt.enqueueDefinitions(b)
	// On the goroutine that delivers receipts, so that a follower of definitions
	// hears of these in the order of the commits.
	ticket.OnDone(func(err error) {
		for _, done := range out {
			if err == nil && done.Changed {
				rt.definitionChanged(done.Stored)
			}
		}
	})
	if err := rt.await(ctx, ticket); err != nil {
		// Unlike a save, an import is not tried again: what the caller compared and
		// was asked to replace is no longer what is there.
		var late *overtakenError
		if errors.As(err, &late) {
			return nil, late.conflict
		}
		return nil, err
	}
	for _, done := range out {
		if !done.Changed {
			continue
		}
		// As for a save: the revision is there, whatever becomes of its triggers.
		if err := rt.dispatch.Refresh(context.WithoutCancel(ctx), done.ID); err != nil {
			rt.log.Error("triggers cannot follow a definition", "sentinel", done.ID, "revision", done.Revision, "error", err)
		}
	}
	return out, nil
}

// importOne makes what is to be written for one definition: nothing if it is
// there already.
func (rt *Runtime) importOne(in Incoming, opt SaveOptions) (Imported, []store.Put, error) {
	def := in.Definition
	canonical, err := json.Marshal(def)
	switch {
	case err != nil:
		return Imported{}, nil, fmt.Errorf("import definition %q: %w", def.ID, err)
	case def.ID == "":
		return Imported{}, nil, errf(abi.BadFields, "import definition: it has no id")
	case len(canonical) > sentinels.MaxBytes:
		return Imported{}, nil, errf(abi.Limit, "import definition %q: it has %d bytes, more than %d", def.ID, len(canonical), sentinels.MaxBytes)
	}
	head, err := rt.head(def.ID)
	if err != nil {
		return Imported{}, nil, err
	}
	if err := expects("import", head, in.Expect); err != nil {
		return Imported{}, nil, err
	}
	hash := def.Hash()
	// Not even its origin changes: where the file is, is for this store to know.
	if head.Revision > 0 && !head.Deleted && head.Hash == hash {
		return Imported{Stored: head}, nil, nil
	}
	// A definition that was deleted here goes on numbering where it ended, so
	// that a revision never means two things.
	history := []Stored{{
		ID: def.ID, Name: def.Name, Revision: head.Revision + 1, Hash: hash, SavedAt: time.Now().UTC(),
		Origin: head.Origin, By: opt.By, Note: opt.Note, Definition: canonical,
	}}
	if len(in.History) > 0 {
		// Also where it is not taken: what is wrong with it should not depend on
		// what this store has.
		checked, err := checkHistory(def.ID, hash, in.History)
		if err != nil {
			return Imported{}, nil, err
		}
		if head.Revision == 0 {
			// Older ones would be the first to go with the next save.
			history = checked[max(0, len(checked)-rt.limits.KeepRevisions):]
		}
	}
	puts, err := rt.historyPuts(history, head.Revision)
	return Imported{history[len(history)-1], true, len(history)}, puts, err
}

// historyPuts writes revisions, the last of which becomes the head, if the
// head's revision is still on.
func (rt *Runtime) historyPuts(history []Stored, on int) ([]store.Put, error) {
	var puts []store.Put
	for i, s := range history {
		value, err := json.Marshal(s)
		if err != nil {
			return nil, fmt.Errorf("import definition %q: %w", s.ID, err)
		}
		// The head is a copy of its revision under the bare id, as putRevision
		// writes it; the check on it guards the whole batch.
		if i == len(history)-1 {
			puts = append(puts, store.Put{Bucket: bucketDefinitions, Key: []byte(s.ID), Value: value, Check: headIs(s.ID, on)})
			if old := s.Revision - rt.limits.KeepRevisions; old > 0 {
				puts = append(puts, store.Put{Bucket: bucketDefinitions, Key: revisionKey(s.ID, old), Delete: true})
			}
		}
		puts = append(puts, store.Put{Bucket: bucketDefinitions, Key: revisionKey(s.ID, s.Revision), Value: value})
	}
	return puts, nil
}

// checkHistory holds a history to what one of this store looks like and returns
// it in that form. Step types of old revisions may be unknown here, as they may
// be unknown to the store that a plugin was taken from; their hashes hold
// nevertheless.
func checkHistory(id sentinels.ID, hash string, history []Stored) ([]Stored, error) {
	out := make([]Stored, 0, len(history))
	for i, s := range history {
		bad := func(format string, args ...any) ([]Stored, error) {
			return nil, errf(abi.BadFields, "import definition %q: revision %d %s", id, s.Revision, fmt.Sprintf(format, args...))
		}
		// The key of a revision has nine digits, see revisionKey.
		if s.Revision < 1 || s.Revision > 999_999_999 || i > 0 && s.Revision <= history[i-1].Revision {
			return bad("is out of order")
		}
		if s.SavedAt.IsZero() {
			return bad("has no time")
		}
		// Neither is in a bundle, and one that was written into it is ignored.
		s.ID, s.Origin = id, ""
		if s.Deleted {
			s.Definition, s.Hash = nil, ""
			out = append(out, s)
			continue
		}
		// By the text, not by decoding: the hash of a definition is that of its
		// canonical text, and a text is there also where a step type is not.
		canonical, err := sentinels.Canonical(s.Definition)
		if err != nil {
			return bad("cannot be read: %v", err)
		}
		sum := sha256.Sum256(canonical)
		if s.Hash != hex.EncodeToString(sum[:]) {
			return bad("is not what its hash says")
		}
		var flat bytes.Buffer // a file may have it indented
		if err := json.Compact(&flat, s.Definition); err != nil {
			return bad("cannot be read: %v", err)
		}
		s.Definition = flat.Bytes()
		var within struct {
			ID sentinels.ID `json:"id"`
		}
		if err := json.Unmarshal(s.Definition, &within); err != nil || within.ID != id {
			return bad("is a definition of %q", within.ID)
		}
		if len(s.Definition) > sentinels.MaxBytes {
			return bad("has %d bytes, more than %d", len(s.Definition), sentinels.MaxBytes)
		}
		out = append(out, s)
	}
	// Otherwise a rollback here would restore something else than there.
	if last := out[len(out)-1]; last.Deleted || last.Hash != hash {
		return nil, errf(abi.BadFields, "import definition %q: its history does not end with it", id)
	}
	return out, nil
}
