package definition

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/revision"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// maxImport bounds the bytes of one import: it is one commit, and all of it is
// in memory at once.
const maxImport = 64 << 20

// Import stores definitions of another store, all of them in one commit or none.
// It returns, in the order of in, when that is durable. opt says by whom and why
// for those that have no history, and what bounds all of them; its other fields are not
// used. More than 64 MiB are the error limit.
//
// A definition that equals the one that the store has already changes nothing.
func (s *Store) Import(ctx context.Context, in []revision.Incoming, opt revision.SaveOptions) ([]revision.Imported, error) {
	if err := s.opt.Writable(); err != nil {
		return nil, err
	}
	var b store.Batch
	var size int
	out := make([]revision.Imported, 0, len(in))
	// Two of one id would conflict within the commit, and which of them wins would
	// depend on their order.
	seen := map[sentinels.ID]bool{}
	for _, one := range in {
		id := one.Definition.ID
		if seen[id] {
			return nil, failure.New(abi.BadFields, "import definition %q: it is given twice", id)
		}
		seen[id] = true
		done, puts, err := s.importOne(one, opt)
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
	leave, err := s.charge(ctx, "import", in[0].Definition.ID, authorOf(opt), b.Puts)
	if err != nil {
		return nil, err
	}
	defer leave()
	ticket := s.enqueue(b)
	// On the goroutine that delivers tickets, so that followers get these in the
	// order of the commits.
	ticket.OnDone(func(err error) {
		for _, done := range out {
			if err == nil && done.Changed {
				s.notify(done.Stored)
			}
		}
	})
	var changed []revision.Stored
	for _, done := range out {
		if done.Changed {
			changed = append(changed, done.Stored)
		}
	}
	if err := s.follow(ctx, ticket, changed...); err != nil {
		// Unlike a save, an import is not repeated: the caller has compared and decided
		// to replace an older revision.
		var race *raceError
		if errors.As(err, &race) {
			return nil, race.conflict
		}
		return nil, err
	}
	return out, nil
}

// importOne returns the writes for one definition: none if the store has it already.
func (s *Store) importOne(in revision.Incoming, opt revision.SaveOptions) (revision.Imported, []store.Put, error) {
	def := in.Definition
	canonical, err := encode("import", def)
	if err != nil {
		return revision.Imported{}, nil, err
	}
	head, err := s.Head(def.ID)
	if err != nil {
		return revision.Imported{}, nil, err
	}
	if err := expect("import", head, in.Expect); err != nil {
		return revision.Imported{}, nil, err
	}
	if err := staysDeleted("import", head, authorOf(opt)); err != nil {
		return revision.Imported{}, nil, err
	}
	if err := s.checkSecrets(head, def, opt.Within); err != nil {
		return revision.Imported{}, nil, err
	}
	hash := def.Hash()
	// Not even its origin changes: where the file is, is for this store to know.
	if head.Revision > 0 && !head.Deleted && head.Hash == hash {
		return revision.Imported{Stored: head}, nil, nil
	}
	// A definition that was deleted here goes on numbering where it ended, so
	// that a revision never means two things.
	history := []revision.Stored{{
		ID: def.ID, Name: def.Name, Revision: head.Revision + 1, Hash: hash, SavedAt: time.Now().UTC(),
		Origin: head.Origin, By: opt.By, Note: opt.Note, Within: s.both(opt.Within, in.Within), Maker: makerOf(opt), Definition: canonical,
	}}
	if len(in.History) > 0 {
		// Also where it is not taken: what is wrong with it should not depend on
		// what this store has.
		checked, err := checkHistory(def.ID, hash, in.History)
		if err != nil {
			return revision.Imported{}, nil, err
		}
		if head.Revision == 0 {
			// Older ones would be the first to go with the next save.
			history = checked[max(0, len(checked)-s.opt.Keep):]
			for i := range history {
				history[i].Within, history[i].Maker = s.both(opt.Within, history[i].Within), makerOf(opt)
				if opt.Within != nil { // an approval that was asked for earlier does not cover it
					history[i].SavedAt = time.Now().UTC()
				}
			}
		}
	}
	newest := &history[len(history)-1]
	newest.Hops, newest.Path = s.opt.Chain(opt.Run)
	puts, err := s.historyPuts(history, head.Revision)
	return revision.Imported{Stored: *newest, Changed: true, Revisions: len(history)}, puts, err
}

// historyPuts writes revisions, the last of which becomes the head, if the
// head's revision is still on.
func (s *Store) historyPuts(history []revision.Stored, on int) ([]store.Put, error) {
	var puts []store.Put
	for i, r := range history {
		value, err := json.Marshal(r)
		if err != nil {
			return nil, fmt.Errorf("import definition %q: %w", r.ID, err)
		}
		// The check on the head guards the whole batch.
		if i == len(history)-1 {
			head, err := s.headPuts("import", r, value, on)
			if err != nil {
				return nil, err
			}
			puts = append(puts, head...)
		}
		puts = append(puts, store.Put{Bucket: Bucket, Key: Key(r.ID, r.Revision), Value: value})
	}
	return puts, nil
}

// checkHistory checks that a history could be one of this store and returns it in
// that form. Step types of old revisions may be unknown here, as they may be unknown
// to a store whose plugin was removed; their hashes are valid nevertheless.
func checkHistory(id sentinels.ID, hash string, history []revision.Stored) ([]revision.Stored, error) {
	out := make([]revision.Stored, 0, len(history))
	for i, s := range history {
		bad := func(format string, args ...any) ([]revision.Stored, error) {
			return nil, failure.New(abi.BadFields, "import definition %q: revision %d %s", id, s.Revision, fmt.Sprintf(format, args...))
		}
		if s.Revision < 1 || s.Revision > maxRevision || i > 0 && s.Revision <= history[i-1].Revision {
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
		// canonical text, which can be made without the step types.
		canonical, err := sentinels.Canonical(s.Definition)
		if err != nil {
			return bad("cannot be read: %v", err)
		}
		sum := sha256.Sum256(canonical)
		if s.Hash != hex.EncodeToString(sum[:]) {
			return bad("does not match its hash")
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
	// Otherwise a rollback here would restore another definition than there.
	if last := out[len(out)-1]; last.Deleted || last.Hash != hash {
		return nil, failure.New(abi.BadFields, "import definition %q: its history does not end with it", id)
	}
	return out, nil
}
