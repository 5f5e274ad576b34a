package definition

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/revision"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Save stores def as a new revision of its id and returns when that is durable. A
// definition that equals the head makes no revision, unless it lifts the bound of the head;
// only a new origin is noted.
// def must come from [Options.Decode].
func (s *Store) Save(ctx context.Context, def *sentinels.Definition, opt revision.SaveOptions) (revision.Stored, error) {
	return s.save(ctx, def, authorOf(opt), opt)
}

func (s *Store) save(ctx context.Context, def *sentinels.Definition, owner string, opt revision.SaveOptions) (revision.Stored, error) {
	if err := s.opt.Writable(); err != nil {
		return revision.Stored{}, err
	}
	canonical, err := encode("save", def)
	if err != nil {
		return revision.Stored{}, err
	}
	hash := def.Hash() // once: of a large definition it takes longer than the commit
	for {
		r, err := s.trySave(ctx, def, hash, canonical, owner, opt)
		var race *raceError
		switch {
		case !errors.As(err, &race):
			return r, err
		case opt.Expect >= 0:
			return revision.Stored{}, race.conflict
		}
		// A caller that expects no revision cannot be too late.
	}
}

// encode returns the canonical text of a definition that can be stored.
func encode(op string, def *sentinels.Definition) ([]byte, error) {
	if def.ID == "" {
		return nil, failure.New(abi.BadFields, "%s definition: it has no id", op)
	}
	canonical, err := json.Marshal(def)
	if err != nil {
		return nil, fmt.Errorf("%s definition %q: %w", op, def.ID, err)
	}
	if len(canonical) > sentinels.MaxBytes { // it could not be read again
		return nil, failure.New(abi.Limit, "%s definition %q: it has %d bytes, more than %d", op, def.ID, len(canonical), sentinels.MaxBytes)
	}
	return canonical, nil
}

func (s *Store) trySave(ctx context.Context, def *sentinels.Definition, hash string, canonical []byte, owner string, opt revision.SaveOptions) (revision.Stored, error) {
	head, err := s.Head(def.ID)
	if err != nil {
		return revision.Stored{}, err
	}
	if err := expect("save", head, opt.Expect); err != nil {
		return revision.Stored{}, err
	}
	if err := staysDeleted("save", head, owner); err != nil {
		return revision.Stored{}, err
	}
	next := revision.Stored{
		ID: def.ID, Name: def.Name, Revision: head.Revision + 1, Hash: hash, SavedAt: time.Now().UTC(),
		Origin: opt.Origin, By: opt.By, Note: opt.Note, Within: opt.Within, Maker: makerOf(opt), Definition: canonical,
	}
	if err := s.checkSecrets(head, def, opt.Within); err != nil {
		return revision.Stored{}, err
	}
	if opt.Run == "" && !opt.Changed.IsZero() && s.opt.ChainAt != nil {
		next.Hops, next.Path = s.opt.ChainAt(def.ID, opt.Changed)
	} else {
		next.Hops, next.Path = s.opt.Chain(opt.Run)
	}
	if head.Revision > 0 && !head.Deleted {
		if !opt.Whole && next.Maker == "" {
			next.Maker = head.Agent()
		}
		lifted := opt.Whole && opt.Within == nil && head.Within != nil
		if !opt.Whole {
			next.Within = s.both(opt.Within, head.Within)
		}
		if next.Origin == "" {
			next.Origin = head.Origin
		}
		if head.Hash == hash && !lifted { // a file that moved makes no revision
			if next.Origin == head.Origin {
				return head, nil
			}
			moved := head
			moved.Origin = next.Origin
			return moved, s.put(ctx, "save", moved, head.Revision, owner)
		}
	}
	return next, s.put(ctx, "save", next, head.Revision, owner)
}

// makerOf returns the agent that makes a revision, empty for any other author.
func makerOf(opt revision.SaveOptions) string {
	if opt.Within == nil {
		return ""
	}
	return cmp.Or(revision.AgentOf(opt.By), opt.Maker)
}

// checkSecrets returns the error of a definition of an author with a bound, a model or an agent,
// that names a secret which the head does not name.
func (s *Store) checkSecrets(head revision.Stored, def *sentinels.Definition, within []string) error {
	if within == nil {
		return nil
	}
	var before *sentinels.Definition
	if head.Revision > 0 && !head.Deleted {
		before = sentinels.Lenient(head.Definition, s.opt.DecodeOptions(""))
	}
	return CheckSecrets(before, def, s.opt.DecodeOptions("").Types)
}

// CheckSecrets returns the error of an edit by a model or an agent that adds the use of a secret.
// before may be nil.
func CheckSecrets(before, def *sentinels.Definition, types *sentinels.TypeSet) error {
	added := sentinels.AddedSecrets(before, def, types)
	if len(added) == 0 {
		return nil
	}
	return &abi.Error{
		Code: abi.Denied, Permanent: true, Field: "env", Message: fmt.Sprintf("save definition %q: only a person adds the use of a secret: %s", def.ID, strings.Join(added, ", ")),
		Hint: "leave it out; a person writes it into the definition, and allows it with `sentinel secret allow`",
	}
}

// staysDeleted returns the error of an author with a bound, see [authorOf], who restores what a person deleted: its
// triggers would fire again, under the name that the person gave it.
func staysDeleted(op string, head revision.Stored, author string) error {
	if author == "" || !head.Deleted || head.Within != nil {
		return nil
	}
	return &abi.Error{
		Code: abi.Denied, Permanent: true, Field: "sentinelId", Message: fmt.Sprintf("%s definition %q: a person deleted it or its file, so only a person restores it", op, head.ID),
		Hint: fmt.Sprintf("sentinel rollback %s %d, by a person; or choose another id", head.ID, head.Revision-1),
	}
}

// expect compares the revision that an edit was made on with the head. What is
// deleted counts as missing.
func expect(op string, head revision.Stored, have int) error {
	current := head.Revision
	if head.Deleted {
		current = 0
	}
	if have < 0 || have == current {
		return nil
	}
	return conflict(op, head.ID, have, current)
}

// conflict is the error of an edit that was made on a revision which is not the
// current one; current is 0 if there is none.
func conflict(op string, id sentinels.ID, have, current int) *abi.Error {
	e := failure.New(abi.Conflict, "%s definition %q: revision conflict: have %d, current is %d", op, id, have, current)
	if current == 0 {
		e = failure.New(abi.Conflict, "%s definition %q: revision conflict: have %d, but the definition does not exist", op, id, have)
	}
	e.Hint = "read the definition again and repeat the edit on it"
	return e
}

// A raceError is the conflict of two edits at the same time, as opposed to that of an
// edit that was stale from the beginning: another attempt may succeed.
type raceError struct{ conflict *abi.Error }

func (e *raceError) Error() string { return e.conflict.Message }

// put makes r the head, if the head's revision is still on, and notifies followers. A
// revision that is not new, r with another origin, is not published. The bytes count for owner.
func (s *Store) put(ctx context.Context, op string, r revision.Stored, on int, owner string) error {
	value, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("%s definition %q: %w", op, r.ID, err)
	}
	puts, err := s.headPuts(op, r, value, on)
	if err != nil {
		return err
	}
	puts = append(puts, store.Put{Bucket: Bucket, Key: Key(r.ID, r.Revision), Value: value})
	leave, err := s.charge(ctx, op, r.ID, owner, puts)
	if err != nil {
		return err
	}
	defer leave()
	ticket := s.enqueue(store.Batch{Puts: puts})
	if r.Revision != on {
		ticket.OnDone(func(err error) {
			if err == nil {
				s.notify(r)
			}
		})
	}
	return s.follow(ctx, ticket, r)
}

// headPuts writes a revision as the head, if the head's revision is still on, and
// deletes those that are no longer kept. The newest one of a person is kept beyond the limit, so that an
// agent's edits do not remove what a person has to return to.
func (s *Store) headPuts(op string, r revision.Stored, value []byte, on int) ([]store.Put, error) {
	puts := []store.Put{{Bucket: Bucket, Key: []byte(r.ID), Value: value, Check: headIs(op, r.ID, on)}}
	last := r.Revision - s.opt.Keep // of those that are no longer kept
	if last <= 0 {
		return puts, nil
	}
	found := r.OfPerson()
	var from []byte // nil is the newest
	if found {
		from = Key(r.ID, last+1)
	}
	var bad error
	err := s.opt.Store.Scan(Bucket, []byte(r.ID+"/"), from, true, func(key, value []byte) bool {
		beyond := string(key) <= string(Key(r.ID, last))
		if found && !beyond {
			return true
		}
		if !found {
			before, err := Read(value)
			if err != nil {
				bad = fmt.Errorf("%s definition %q: read revision %q: %w", op, r.ID, key, err)
				return false
			}
			if found = before.OfPerson(); found {
				return true
			}
		}
		if beyond {
			puts = append(puts, store.Put{Bucket: Bucket, Key: bytes.Clone(key), Delete: true})
		}
		return true
	})
	return puts, errors.Join(err, bad)
}

// headIs is the precondition of a new revision: the newest one is still on.
func headIs(op string, id sentinels.ID, on int) store.Check {
	return func(current []byte, exists bool) error {
		var head revision.Stored
		if exists {
			var err error
			if head, err = Read(current); err != nil {
				return err
			}
		}
		if head.Revision != on {
			return &raceError{conflict(op, id, on, head.Revision)}
		}
		return nil
	}
}
