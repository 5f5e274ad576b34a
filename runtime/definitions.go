package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Stored is one revision of a definition in the store. The definition is the
// last field: see readStored.
type Stored struct {
	ID         sentinels.ID    `json:"id"`
	Name       string          `json:"name,omitempty"` // missing in revisions of early releases
	Revision   int             `json:"revision"`       // counts from 1, also over a deletion
	Hash       string          `json:"hash"`
	SavedAt    time.Time       `json:"savedAt"`
	Origin     string          `json:"origin,omitempty"`  // the file it lives in
	By         string          `json:"by,omitempty"`      // who made the revision
	Note       string          `json:"note,omitempty"`    // why, in the words of the author
	Deleted    bool            `json:"deleted,omitempty"` // a tombstone: this revision has no definition
	Definition json.RawMessage `json:"definition,omitempty"`
}

// AnyRevision as an expected revision means "whatever is there".
const AnyRevision = -1

// SaveOptions say what a new revision is.
type SaveOptions struct {
	// Expect is the revision the edit was made on, [AnyRevision] for whatever is
	// there. Another one is the error conflict. Default 0: the definition is new.
	Expect int
	// Origin is the file the definition lives in. Default: that of the revision
	// before.
	Origin string
	// By says who makes the revision. Default empty: not known.
	By string
	// Note says why. Default empty.
	Note string
}

// Decode reads a definition against the step types that are live, with
// conditions and cron expressions checked and plugins asked about their steps,
// and reports every problem.
func (rt *Runtime) Decode(src []byte, file string) (*sentinels.Definition, sentinels.Problems) {
	def, problems := rt.decode(src, file)
	if len(problems) > 0 {
		return def, problems
	}
	if problems = rt.askPlugins(def); len(problems) > 0 {
		return nil, problems.Locate(file, src, rt.Types())
	}
	return def, nil
}

// decode reads without asking plugins: what is stored was asked about before.
func (rt *Runtime) decode(src []byte, file string) (*sentinels.Definition, sentinels.Problems) {
	return sentinels.Decode(src, rt.decodeOptions(file))
}

// decodeOptions are those of the step types that are live now and of the
// program's kinds of triggers.
func (rt *Runtime) decodeOptions(file string) sentinels.DecodeOptions {
	opt := sentinels.DecodeOptions{
		File: file, Types: rt.Types(), UnknownType: rt.deniedType, CheckCron: rt.opt.CheckCron, CheckExpression: rt.cond.Check,
	}
	if set := rt.opt.Triggers; len(set) > 0 {
		opt.Triggers, opt.CheckTrigger = set.Names(), set.Check
	}
	return opt
}

// DecodeOptions are what [Runtime.Decode] reads with, for callers that rewrite
// the text of a definition. They hold for the step types that are live now.
func (rt *Runtime) DecodeOptions(file string) sentinels.DecodeOptions { return rt.decodeOptions(file) }

// Save is [Runtime.SaveWith] for callers who have nothing to say but the
// revision the edit was made on.
func (rt *Runtime) Save(ctx context.Context, def *sentinels.Definition, expect int) (Stored, error) {
	return rt.SaveWith(ctx, def, SaveOptions{Expect: expect})
}

// SaveWith stores def as a new revision of its id and returns when that is
// durable. Saving what is there already makes no revision; only a new origin is
// noted. def must come from [Runtime.Decode].
func (rt *Runtime) SaveWith(ctx context.Context, def *sentinels.Definition, opt SaveOptions) (Stored, error) {
	if err := rt.writable(); err != nil {
		return Stored{}, err
	}
	if def.ID == "" {
		return Stored{}, errf(abi.BadFields, "save definition: it has no id")
	}
	canonical, err := json.Marshal(def)
	if err != nil {
		return Stored{}, fmt.Errorf("save definition %q: %w", def.ID, err)
	}
	if len(canonical) > sentinels.MaxBytes { // it could not be read again
		return Stored{}, errf(abi.Limit, "save definition %q: it has %d bytes, more than %d", def.ID, len(canonical), sentinels.MaxBytes)
	}
	hash := def.Hash() // once: of a large definition it takes longer than the commit
	for {
		s, err := rt.trySave(ctx, def, hash, canonical, opt)
		var late *overtakenError
		switch {
		case !errors.As(err, &late):
			return s, err
		case opt.Expect >= 0:
			return Stored{}, late.conflict
		}
		// A caller that expects no revision cannot be too late.
	}
}

func (rt *Runtime) trySave(ctx context.Context, def *sentinels.Definition, hash string, canonical []byte, opt SaveOptions) (Stored, error) {
	head, err := rt.head(def.ID)
	if err != nil {
		return Stored{}, err
	}
	if err := expects("save", head, opt.Expect); err != nil {
		return Stored{}, err
	}
	next := Stored{
		ID: def.ID, Name: def.Name, Revision: head.Revision + 1, Hash: hash, SavedAt: time.Now().UTC(),
		Origin: opt.Origin, By: opt.By, Note: opt.Note, Definition: canonical,
	}
	if head.Revision > 0 && !head.Deleted {
		if next.Origin == "" {
			next.Origin = head.Origin
		}
		if head.Hash == hash { // a file that moved makes no revision
			if next.Origin == head.Origin {
				return head, nil
			}
			moved := head
			moved.Origin = next.Origin
			return moved, rt.putRevision(ctx, moved, head.Revision)
		}
	}
	return next, rt.putRevision(ctx, next, head.Revision)
}

// expects holds an edit to the revision it was made on. What is deleted counts
// as not there.
func expects(op string, head Stored, expect int) error {
	current := head.Revision
	if head.Deleted {
		current = 0
	}
	if expect < 0 || expect == current {
		return nil
	}
	e := errf(abi.Conflict, "%s definition %q: made on revision %d, the current one is %d", op, head.ID, expect, current)
	if current == 0 {
		e = errf(abi.Conflict, "%s definition %q: made on revision %d, but there is none", op, head.ID, expect)
	}
	e.Hint = "read the definition again and repeat the edit on it"
	return e
}

// An overtakenError is the conflict of two edits at the same time, as against
// that of one that was stale from the beginning: a second look may solve it.
type overtakenError struct{ conflict *abi.Error }

func (e *overtakenError) Error() string { return e.conflict.Message }

// putRevision makes s the head, if the head's revision is still on, and tells
// about it. A revision that is not new, s with another origin, is not published.
func (rt *Runtime) putRevision(ctx context.Context, s Stored, on int) error {
	value, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("save definition %q: %w", s.ID, err)
	}
	b := store.Batch{Puts: []store.Put{
		{Bucket: bucketDefinitions, Key: []byte(s.ID), Value: value, Check: headIs(s.ID, on)},
		{Bucket: bucketDefinitions, Key: revisionKey(s.ID, s.Revision), Value: value},
	}}
	if old := s.Revision - rt.limits.KeepRevisions; old > 0 {
		b.Puts = append(b.Puts, store.Put{Bucket: bucketDefinitions, Key: revisionKey(s.ID, old), Delete: true})
	}
	ticket := rt.enqueueDefinitions(b)
	if s.Revision != on {
		ticket.OnDone(func(err error) {
			if err == nil {
				rt.definitionChanged(s)
			}
		})
	}
	if err := rt.await(ctx, ticket); err != nil {
		return err
	}
	// The revision is there, whatever becomes of the caller or of its triggers.
	if err := rt.arming.refresh(context.WithoutCancel(ctx), s.ID, false); err != nil {
		rt.log.Error("triggers cannot follow a definition", "sentinel", s.ID, "revision", s.Revision, "error", err)
	}
	return nil
}

// headIs is the precondition of a new revision: the newest one is still on.
func headIs(id sentinels.ID, on int) store.Check {
	return func(current []byte, exists bool) error {
		now := Stored{ID: id}
		if exists {
			var err error
			if now, err = readStored(current); err != nil {
				return err
			}
		}
		if now.Revision != on {
			return &overtakenError{errf(abi.Conflict, "save definition %q: another edit came between, the current revision is %d", id, now.Revision)}
		}
		return nil
	}
}

func revisionKey(id sentinels.ID, revision int) []byte {
	return fmt.Appendf(nil, "%s/%09d", id, revision)
}

// readStored decodes one revision without looking into the definition, which
// may be large: listings read thousands. In what [Stored] marshals to, the
// first unescaped `,"definition":` is the last field's.
func readStored(raw []byte) (Stored, error) {
	var s Stored
	const last = `,"definition":`
	i := bytes.Index(raw, []byte(last))
	if i < 0 || len(raw) < i+len(last)+2 {
		err := json.Unmarshal(raw, &s)
		return s, err
	}
	head := append(bytes.Clone(raw[:i]), '}')
	if err := json.Unmarshal(head, &s); err != nil {
		return s, err
	}
	s.Definition = bytes.Clone(raw[i+len(last) : len(raw)-1])
	return s, nil
}

// head returns the newest revision, which may be a tombstone; one of revision
// 0 if the id was never used.
func (rt *Runtime) head(id sentinels.ID) (Stored, error) {
	raw, ok, err := rt.db.Get(bucketDefinitions, []byte(id))
	if err != nil || !ok {
		return Stored{ID: id}, err
	}
	s, err := readStored(raw)
	if err != nil {
		return Stored{}, fmt.Errorf("read definition %q: %w", id, err)
	}
	return s, nil
}

// Definition returns the newest revision of a definition, or not_found.
func (rt *Runtime) Definition(id sentinels.ID) (Stored, error) {
	s, err := rt.head(id)
	if err != nil {
		return Stored{}, err
	}
	if s.Revision == 0 || s.Deleted {
		e := errf(abi.NotFound, "no sentinel has the id %q", id)
		if near := sentinels.Suggest(string(id), rt.definitionIDs()); len(near) > 0 {
			e.Hint = fmt.Sprintf("did you mean %q?", near[0])
		}
		return Stored{}, e
	}
	return s, nil
}

// Definitions returns the newest revision of every definition that is not
// deleted, by id. All callers share their texts: they must not be changed.
func (rt *Runtime) Definitions() ([]Stored, error) {
	kept, ok, ticket := rt.heads.get()
	if ok {
		return kept, nil
	}
	var out []Stored
	var bad error
	err := rt.db.Scan(bucketDefinitions, nil, nil, false, func(key, value []byte) bool {
		if bytes.IndexByte(key, '/') >= 0 {
			return true
		}
		s, err := readStored(value)
		switch {
		case err != nil:
			bad = errors.Join(bad, fmt.Errorf("read definition %q: %w", key, err))
		case !s.Deleted:
			out = append(out, s)
		}
		return true
	})
	if err = errors.Join(err, bad); err == nil {
		rt.heads.put(out, ticket)
	}
	return out, err
}

func (rt *Runtime) definitionIDs() []string {
	all, _ := rt.Definitions()
	ids := make([]string, 0, len(all))
	for _, s := range all {
		ids = append(ids, string(s.ID))
	}
	return ids
}

// problemsError turns the errors among problems into one error, or nil.
func problemsError(problems sentinels.Problems) error {
	if len(problems) == 0 {
		return nil
	}
	return problems
}
