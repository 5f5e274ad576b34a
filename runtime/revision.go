package runtime

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Delete ends a definition: it cannot be started any more, runs of it go on
// with what they have, and its revisions stay readable. A later save continues
// their numbering. expect is as in [SaveOptions].
func (rt *Runtime) Delete(ctx context.Context, id sentinels.ID, expect int) error {
	_, err := rt.DeleteWith(ctx, id, SaveOptions{Expect: expect})
	return err
}

// DeleteWith is [Runtime.Delete] with who and why. It returns the tombstone.
func (rt *Runtime) DeleteWith(ctx context.Context, id sentinels.ID, opt SaveOptions) (Stored, error) {
	if err := rt.writable(); err != nil {
		return Stored{}, err
	}
	for {
		head, err := rt.Definition(id)
		if err != nil {
			return Stored{}, err
		}
		if err := expects("delete", head, opt.Expect); err != nil {
			return Stored{}, err
		}
		// The origin stays: the owner of the file has to find it.
		tombstone := Stored{
			ID: id, Name: head.Name, Revision: head.Revision + 1, SavedAt: time.Now().UTC(), Deleted: true,
			Origin: head.Origin, By: opt.By, Note: opt.Note,
		}
		err = rt.putRevision(ctx, tombstone, head.Revision)
		var late *overtakenError
		switch {
		case !errors.As(err, &late):
			return tombstone, err
		case opt.Expect >= 0:
			return Stored{}, late.conflict
		}
	}
}

// Revisions returns the kept revisions of a definition, tombstones included,
// the newest first and without their definitions. It is not_found for an id
// that was never used.
func (rt *Runtime) Revisions(id sentinels.ID) ([]Stored, error) {
	var out []Stored
	var bad error
	err := rt.db.Scan(bucketDefinitions, []byte(id+"/"), nil, true, func(key, value []byte) bool {
		s, err := readStored(value)
		if err != nil {
			bad = errors.Join(bad, fmt.Errorf("read revision %q: %w", key, err))
			return true
		}
		s.Definition = nil // 50 of a megabyte each would be much for a list
		out = append(out, s)
		return true
	})
	// No revision at all: let the lookup say so, with the hint it has.
	if err = errors.Join(err, bad); err == nil && len(out) == 0 {
		_, err = rt.Definition(id)
	}
	return out, err
}

// Revision returns one revision of a definition, or not_found naming those that
// are kept.
func (rt *Runtime) Revision(id sentinels.ID, n int) (Stored, error) {
	raw, ok, err := rt.db.Get(bucketDefinitions, revisionKey(id, n))
	if err != nil {
		return Stored{}, err
	}
	if ok {
		s, err := readStored(raw)
		if err != nil {
			err = fmt.Errorf("read revision %d of definition %q: %w", n, id, err)
		}
		return s, err
	}
	kept, err := rt.Revisions(id) // never empty without an error
	if err != nil {
		return Stored{}, err
	}
	e := errf(abi.NotFound, "definition %q has no revision %d", id, n)
	e.Hint = fmt.Sprintf("revisions %d to %d are kept", kept[len(kept)-1].Revision, kept[0].Revision)
	return Stored{}, e
}

// deletedError says that there is nothing in a tombstone.
func deletedError(s Stored) error {
	e := errf(abi.NotFound, "revision %d of definition %q is its deletion", s.Revision, s.ID)
	e.Hint = fmt.Sprintf("the revision before is %d", s.Revision-1)
	return e
}

// Rollback saves revision n again, as a new revision; that also brings a
// deleted definition back. The old definition is checked against the step
// types of today. The note of opt is by default "rollback to revision n".
func (rt *Runtime) Rollback(ctx context.Context, id sentinels.ID, n int, opt SaveOptions) (Stored, error) {
	old, err := rt.Revision(id, n)
	if err != nil {
		return Stored{}, err
	}
	if old.Deleted {
		return Stored{}, deletedError(old)
	}
	// Step types may have gone since, or ask for other fields.
	def, problems := rt.Decode(old.Definition, fmt.Sprintf("%s@%d", id, n))
	if err := problemsError(problems); err != nil {
		return Stored{}, err
	}
	if opt.Note == "" {
		opt.Note = fmt.Sprintf("rollback to revision %d", n)
	}
	return rt.SaveWith(ctx, def, opt)
}
