package definition

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/revision"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Delete ends a definition by a tombstone, which it returns: the definition cannot be
// started any more, and its revisions stay readable. A later save continues their
// numbering, of which authors with a bound make none behind a deletion by one without. Of opt, the origin is not used.
func (s *Store) Delete(ctx context.Context, id sentinels.ID, opt revision.SaveOptions) (revision.Stored, error) {
	if err := s.opt.Writable(); err != nil {
		return revision.Stored{}, err
	}
	for {
		head, err := s.Get(id)
		if err != nil {
			return revision.Stored{}, err
		}
		if err := expect("delete", head, opt.Expect); err != nil {
			return revision.Stored{}, err
		}
		// The origin stays: the owner of the file has to find it.
		tombstone := revision.Stored{
			ID: id, Name: head.Name, Revision: head.Revision + 1, SavedAt: time.Now().UTC(), Deleted: true,
			Origin: head.Origin, By: opt.By, Note: opt.Note,
		}
		if opt.Within != nil {
			tombstone.Within = []string{} // it has no runs: that its author has a bound is enough
		}
		err = s.put(ctx, "delete", tombstone, head.Revision, "")
		var race *raceError
		switch {
		case !errors.As(err, &race):
			return tombstone, err
		case opt.Expect >= 0:
			return revision.Stored{}, race.conflict
		}
	}
}

// Revisions returns the kept revisions of a definition, tombstones included, the
// newest first and without their definitions. It is the error not_found for an id
// that was never used.
func (s *Store) Revisions(id sentinels.ID) ([]revision.Stored, error) {
	var out []revision.Stored
	var bad error
	err := s.opt.Store.Scan(Bucket, []byte(id+"/"), nil, true, func(key, value []byte) bool {
		r, err := Read(value)
		if err != nil {
			bad = errors.Join(bad, fmt.Errorf("read revision %q: %w", key, err))
			return true
		}
		r.Definition = nil // 50 of a megabyte each would be much for a list
		out = append(out, r)
		return true
	})
	// Without any revision Get returns not_found, with its hint.
	if err = errors.Join(err, bad); err == nil && len(out) == 0 {
		_, err = s.Get(id)
	}
	return out, err
}

// OfPerson is Runtime.RevisionOfPerson of package runtime.
func (s *Store) OfPerson(id sentinels.ID, before int) (found revision.Stored, err error) {
	if before == 0 {
		before = math.MaxInt32
	}
	var bad error
	err = s.opt.Store.Scan(Bucket, []byte(id+"/"), Key(id, before), true, func(key, value []byte) bool {
		r, err := Read(value)
		if err != nil {
			bad = fmt.Errorf("read revision %q: %w", key, err)
			return false
		}
		if r.OfPerson() {
			found = r
		}
		return found.Revision == 0
	})
	return found, errors.Join(err, bad)
}

// Revision returns one revision of a definition, or the error not_found, whose hint
// names those that are kept.
func (s *Store) Revision(id sentinels.ID, n int) (revision.Stored, error) {
	raw, ok, err := s.opt.Store.Get(Bucket, Key(id, n))
	if err != nil {
		return revision.Stored{}, err
	}
	if ok {
		r, err := Read(raw)
		if err != nil {
			err = fmt.Errorf("read revision %d of definition %q: %w", n, id, err)
		}
		return r, err
	}
	kept, err := s.Revisions(id) // never empty without an error
	if err != nil {
		return revision.Stored{}, err
	}
	e := failure.New(abi.NotFound, "definition %q has no revision %d", id, n)
	e.Hint = fmt.Sprintf("revisions %d to %d are kept", kept[len(kept)-1].Revision, kept[0].Revision)
	return revision.Stored{}, e
}

// deletedError is returned for the definition of a tombstone.
func deletedError(r revision.Stored) error {
	e := failure.New(abi.NotFound, "revision %d of definition %q is its deletion", r.Revision, r.ID)
	e.Hint = fmt.Sprintf("the revision before is %d", r.Revision-1)
	return e
}

// Rollback saves revision n again, as a new revision; that also restores a deleted
// definition. The old definition is checked against the step types of today, and has the
// bound that it had. The note of opt is by default "rollback to revision n".
func (s *Store) Rollback(ctx context.Context, id sentinels.ID, n int, opt revision.SaveOptions) (revision.Stored, error) {
	old, err := s.Revision(id, n)
	if err != nil {
		return revision.Stored{}, err
	}
	if old.Deleted {
		return revision.Stored{}, deletedError(old)
	}
	// Step types may have been removed since, or need other fields.
	def, problems, _ := s.DecodeEdit(old.Definition, fmt.Sprintf("%s@%d", id, n))
	if len(problems) > 0 {
		return revision.Stored{}, problems
	}
	if opt.Note == "" {
		opt.Note = fmt.Sprintf("rollback to revision %d", n)
	}
	owner := authorOf(opt)
	opt.Within, opt.Maker, opt.Whole = s.both(opt.Within, old.Within), old.Agent(), true
	return s.save(ctx, def, owner, opt)
}
