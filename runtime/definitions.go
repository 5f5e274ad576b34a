package runtime

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/definition"
	"github.com/sentinel-runtime/sentinel/runtime/revision"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Stored is one revision of a definition in the store.
type Stored = revision.Stored

// SaveOptions describe a new revision.
type SaveOptions = revision.SaveOptions

// DefinitionChange reports a new revision of a definition to [Observer.Definition].
type DefinitionChange = revision.Change

// Incoming is a definition that comes from another store, see [Runtime.Import].
type Incoming = revision.Incoming

// Imported is the result of an [Incoming] definition.
type Imported = revision.Imported

// AnyRevision as an expected revision means any revision or none.
const AnyRevision = revision.Any

// openDefinitions makes the store of definitions. The observer gets each revision
// after the parts of the engine.
func (rt *Runtime) openDefinitions() {
	rt.definitions = definition.New(definition.Options{
		Store: rt.db, Keep: rt.opt.Limits.KeepRevisions, AgentBytes: rt.opt.Limits.AgentBytes, AgentDefinitions: rt.opt.Limits.AgentDefinitions, Inspect: rt.Inspect, Context: rt.ctx, DecodeOptions: rt.decodeOptions,
		Chain: rt.Chain, ChainAt: func(id sentinels.ID, at time.Time) (int, []string) { return rt.dispatch.ChainAt(id, at) }, Writable: rt.writable, Await: rt.await, Commands: rt.opt.Commands, Log: rt.opt.Logger,
		Saved: func(ctx context.Context, id sentinels.ID) error {
			rt.expectStored(id) // before its triggers read
			return rt.dispatch.Refresh(ctx, id)
		},
	})
	if observe := rt.opt.Observer.Definition; observe != nil {
		rt.definitions.Follow(func(s Stored) {
			observe(DefinitionChange{
				ID: s.ID, Name: s.Name, Revision: s.Revision, Hash: s.Hash, Deleted: s.Deleted,
				Origin: s.Origin, By: s.By, Note: s.Note, Time: s.SavedAt,
			})
		})
	}
}

// Decode reads a definition against the step types that are live, with conditions,
// triggers and all that [Options.Checks] knows checked, and plugins asked about their
// steps. It reports every error. What is known but absent here is none: it is one when a
// run is started.
func (rt *Runtime) Decode(src []byte, file string) (*sentinels.Definition, sentinels.Problems) {
	return rt.definitions.Decode(src, file)
}

// Inspect reports every problem of a definition, also of kind [sentinels.KindAbsent],
// sorted by position. If there are errors, the definition is what could be read of it,
// nil for a text that is not JSON; it is neither for storing nor for execution. If ctx ends
// before, there may be more problems. Conditions behind those whose check took 2 s of a processor are not checked,
// which is an error of kind [sentinels.KindLimit].
func (rt *Runtime) Inspect(ctx context.Context, src []byte, file string) (*sentinels.Definition, sentinels.Problems) {
	opt := rt.decodeOptions(file)
	opt.CheckExpression = rt.conditionCheck(ctx)
	report := sentinels.Inspect(src, opt)
	if report.Definition == nil {
		return nil, report.Problems
	}
	var found sentinels.Problems
	report.Definition.Walk(opt.Types, func(prefix string, d *sentinels.Definition) {
		if ctx.Err() != nil {
			return
		}
		own := rt.plugins.Validate(ctx, d, rt.opt.Commands, func(path string) bool { return report.BrokenStep(prefix + path) })
		if rt.opt.Checks != nil {
			own = append(own, rt.opt.Checks.Definition(ctx, d, opt.Types)...)
		}
		for _, p := range own {
			p.Path = prefix + p.Path
			found = append(found, p)
		}
	})
	if rt.opt.Checks != nil {
		found = append(found, rt.opt.Checks.Environment(report.Definition.ID, report.Definition, opt.Types)...)
	}
	if len(found) == 0 {
		return report.Definition, report.Problems
	}
	return report.Definition, report.Problems.Merge(found.Locate(file, src, opt.Types))
}

// DecodeEdit decodes a definition that takes the place of the stored one with its id. It
// is refused for the errors that the stored one does not have; a definition that became
// invalid because the host changed can still be edited. Errors that both have are older,
// as warnings.
func (rt *Runtime) DecodeEdit(src []byte, file string) (def *sentinels.Definition, problems, older sentinels.Problems) {
	return rt.definitions.DecodeEdit(src, file)
}

// InspectEdit returns all problems of [Runtime.DecodeEdit]. Errors that the stored
// definition has too are warnings.
func (rt *Runtime) InspectEdit(ctx context.Context, src []byte, file string) (*sentinels.Definition, sentinels.Problems) {
	return rt.definitions.InspectEdit(ctx, src, file)
}

// absent returns an error if something that a definition needs is known, but not here.
// A reference to a sentinel that named reports is available. Owner is the identity of the run.
func (rt *Runtime) absent(def *sentinels.Definition, owner sentinels.ID, named func(sentinels.ID) bool) error {
	var found sentinels.Problems
	types := rt.Types()
	references := sync.OnceValue(func() map[string]sentinels.ID { return def.References(types) })
	def.Walk(types, func(prefix string, d *sentinels.Definition) {
		d.EachStep(func(path string, s *sentinels.Step) {
			if _, live := types.Lookup(s.Type); live {
				return
			}
			if message, hint := rt.deniedType(s.Type); message != "" {
				found = append(found, sentinels.Problem{Path: prefix + path + ".type", Kind: sentinels.KindAbsent, Message: message, Hint: hint, Denied: true})
			}
		})
		if rt.opt.Checks != nil {
			for _, p := range rt.opt.Checks.Absent(d, types) {
				p.Path = prefix + p.Path
				if id, ok := references()[p.Path]; !ok || !named(id) {
					found = append(found, p)
				}
			}
		}
	})
	if rt.opt.Checks != nil {
		found = append(found, slices.DeleteFunc(rt.opt.Checks.Environment(owner, def, types), func(p sentinels.Problem) bool { return p.Kind != sentinels.KindAbsent })...)
	}
	if len(found) == 0 {
		return nil
	}
	e := &abi.Error{Code: abi.Denied, Permanent: true, Field: found[0].Path, Hint: found[0].Hint}
	if slices.ContainsFunc(found, func(p sentinels.Problem) bool { return !p.Denied }) {
		e.Code = abi.NotFound
	}
	texts := make([]string, len(found))
	for i, p := range found {
		texts[i] = p.String()
	}
	e.Message = fmt.Sprintf("start %q: %s", def.ID, strings.Join(texts, "; "))
	return e
}

// hintedError is an error of a condition with what to do about it.
type hintedError struct {
	error
	hint string
}

// HintText returns the hint; see [sentinels.DecodeOptions].
func (e hintedError) HintText() string { return e.hint }

func (e hintedError) Unwrap() error { return e.error }

// checkCondition checks the text of a condition of a definition that was checked when it was stored.
func (rt *Runtime) checkCondition(src string) error {
	_, err := rt.conditions.Check(rt.ctx, src)
	return hinted(err)
}

// hinted returns an error of a condition with its hint, see [sentinels.DecodeOptions].
func hinted(err error) error {
	if e := abi.As(err); e != nil && e.Hint != "" {
		return hintedError{err, e.Hint}
	}
	return err
}

// maxCheckTime bounds the processor time of the checks of conditions in what one caller gives at once. A
// condition of a usual length takes less than a millisecond; one that is made to be slow takes a second, and a
// request has place for thousands.
const maxCheckTime = 2 * time.Second

// checkTime is what is left of maxCheckTime.
type checkTime struct {
	mu   sync.Mutex
	left time.Duration
}

type checkTimeKey struct{}

// ShareCheckTime returns a context with which all definitions that are inspected have together the time for conditions
// that one has else, see [Runtime.Inspect]. A context that has this already is returned.
func ShareCheckTime(ctx context.Context) context.Context {
	if ctx.Value(checkTimeKey{}) != nil {
		return ctx
	}
	return context.WithValue(ctx, checkTimeKey{}, &checkTime{left: maxCheckTime})
}

// conditionCheck returns the check for the conditions of a definition from outside.
func (rt *Runtime) conditionCheck(ctx context.Context) func(src string) error {
	shared, ok := ctx.Value(checkTimeKey{}).(*checkTime)
	if !ok {
		shared = &checkTime{left: maxCheckTime}
	}
	return func(src string) error {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("condition: %w: %w", sentinels.ErrUnchecked, context.Cause(ctx))
		}
		if !shared.take(0) {
			return hintedError{
				fmt.Errorf("this condition and those behind it are %w: those before took more than %s of a processor", sentinels.ErrUnchecked, maxCheckTime),
				"write shorter conditions, or do the work in a step whose output a condition compares",
			}
		}
		took, err := rt.conditions.Check(ctx, src)
		shared.take(took)
		return hinted(err)
	}
}

// take subtracts a time, and reports whether there is some left.
func (c *checkTime) take(d time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left -= d
	return c.left > 0
}

// decodeOptions are those of the step types that are live now and of the
// program's kinds of triggers.
func (rt *Runtime) decodeOptions(file string) sentinels.DecodeOptions {
	opt := sentinels.DecodeOptions{
		File: file, Types: rt.Types(), UnknownType: rt.deniedType, CheckExpression: rt.checkCondition,
	}
	if set := rt.opt.Triggers; len(set) > 0 {
		opt.Triggers, opt.CheckTrigger = set.Formats(), set.Check
	}
	return opt
}

// DecodeOptions are what [Runtime.Decode] reads with, for callers that rewrite
// the text of a definition. They are valid for the step types that are live now.
func (rt *Runtime) DecodeOptions(file string) sentinels.DecodeOptions {
	opt := rt.decodeOptions(file)
	opt.AllowAbsent = true
	return opt
}

// Save is [Runtime.SaveWith] for callers that give only the revision the edit was
// made on.
func (rt *Runtime) Save(ctx context.Context, def *sentinels.Definition, expect int) (Stored, error) {
	return rt.definitions.Save(ctx, def, SaveOptions{Expect: expect})
}

// SaveWith stores def as a new revision of its id and returns when that is
// durable. A definition that equals the newest one makes no revision, unless it lifts the
// bound of that; only a new origin is noted. def must come from [Runtime.Decode].
func (rt *Runtime) SaveWith(ctx context.Context, def *sentinels.Definition, opt SaveOptions) (Stored, error) {
	return rt.definitions.Save(ctx, def, opt)
}

// Edit makes a new revision of a definition from its newest one: fn gets that and
// returns another, which is checked whole, as if it came from a file, and saved.
// Problems are located in the text that [sentinels.Encode] returns. An edit that is
// refused changes nothing.
//
// With opt.Expect greater than 0 a stale edit is the error conflict; otherwise it is
// repeated on the result of a concurrent edit, so that fn may be called more than
// once. fn must not change its argument.
func (rt *Runtime) Edit(ctx context.Context, id sentinels.ID, opt SaveOptions, fn func(*sentinels.Definition) (*sentinels.Definition, error)) (Stored, error) {
	return rt.definitions.Edit(ctx, id, opt, fn)
}

// Delete ends a definition: it cannot be started any more, runs of it continue with
// the revision that they have, and its revisions stay readable. A later save
// continues their numbering. expect is as in [SaveOptions].
func (rt *Runtime) Delete(ctx context.Context, id sentinels.ID, expect int) error {
	_, err := rt.DeleteWith(ctx, id, SaveOptions{Expect: expect})
	return err
}

// DeleteWith is [Runtime.Delete] with who and why. It returns the tombstone. A pause of the triggers is deleted as well.
func (rt *Runtime) DeleteWith(ctx context.Context, id sentinels.ID, opt SaveOptions) (tombstone Stored, err error) {
	err = rt.dispatch.EndPause(id, opt.Over, func() error {
		tombstone, err = rt.definitions.Delete(ctx, id, opt)
		return err
	})
	return tombstone, err
}

// Rollback saves revision n again, as a new revision; that also restores a deleted
// definition. The old definition is checked against the step types of today, and has the
// bound that it had. The note of opt is by default "rollback to revision n".
func (rt *Runtime) Rollback(ctx context.Context, id sentinels.ID, n int, opt SaveOptions) (Stored, error) {
	return rt.definitions.Rollback(ctx, id, n, opt)
}

// Import stores definitions of another store, all of them in one commit or none.
// It returns, in the order of in, when that is durable. opt says by whom and why
// for those that have no history, and what bounds all of them; its other fields are not
// used. More than 64 MiB are the error limit.
//
// A definition that equals the one that the store has already changes nothing.
func (rt *Runtime) Import(ctx context.Context, in []Incoming, opt SaveOptions) ([]Imported, error) {
	return rt.definitions.Import(ctx, in, opt)
}

// Definition returns the newest revision of a definition, or not_found.
func (rt *Runtime) Definition(id sentinels.ID) (Stored, error) { return rt.definitions.Get(id) }

// IsStored reports whether a sentinel with the id is stored and not deleted. One that cannot be read is stored.
func (rt *Runtime) IsStored(id sentinels.ID) bool { return rt.definitions.Stored(id) }

// Definitions returns the newest revision of every definition that is not
// deleted, by id. All callers share their texts: they must not be changed.
func (rt *Runtime) Definitions() ([]Stored, error) { return rt.definitions.List() }

// EachDefinition calls fn with each of them whose id is behind after, until fn returns false.
func (rt *Runtime) EachDefinition(after sentinels.ID, fn func(Stored) bool) error {
	return rt.definitions.Each(after, fn)
}

// Revisions returns the kept revisions of a definition, tombstones included,
// the newest first and without their definitions. It is not_found for an id
// that was never used.
func (rt *Runtime) Revisions(id sentinels.ID) ([]Stored, error) { return rt.definitions.Revisions(id) }

// Revision returns one revision of a definition, or not_found naming those that
// are kept.
func (rt *Runtime) Revision(id sentinels.ID, n int) (Stored, error) {
	return rt.definitions.Revision(id, n)
}

// RevisionOfPerson returns the newest kept revision before another one, 0 for none, that has a definition of a person or that a
// person has accepted, see [Stored.OfPerson]. One of revision 0 means that there is none.
func (rt *Runtime) RevisionOfPerson(id sentinels.ID, before int) (Stored, error) {
	return rt.definitions.OfPerson(id, before)
}

// WaitingLimits returns the limits that a revision of an agent or a model raises: until a person accepts it, runs that
// take it keep those of the newest revision of a person.
func (rt *Runtime) WaitingLimits(s Stored) ([]string, error) {
	if s.OfPerson() || s.Deleted {
		return nil, nil
	}
	_, raised, err := rt.exec.RaisedLimits(s.ID, s.Revision, sentinels.Lenient(s.Definition, rt.decodeOptions("")), nil)
	return raised, err
}

// Decoded returns the definition of a revision. All callers share it: it must not be
// changed.
func (rt *Runtime) Decoded(s Stored) (*sentinels.Definition, error) { return rt.definitions.Decoded(s) }
