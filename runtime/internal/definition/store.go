package definition

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/internal/fairqueue"
	"github.com/sentinel-runtime/sentinel/runtime/external"
	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/revision"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Bucket is where definitions are in the store: id -> head, [Key] -> revision.
const Bucket = "definitions"

// Options are what a Store needs. All but Commands are required.
type Options struct {
	Store Tables
	Keep  int // revisions of each definition that are kept
	// AgentBytes bounds the kept revisions of an agent, or of all models; all of them together may have
	// four times as many bytes. Default 0: no bound.
	AgentBytes int64
	// AgentDefinitions bounds the definitions of an agent, or of all models, in the same way. Default 0: no bound.
	AgentDefinitions int
	// Inspect reads a definition from outside and reports every problem, warnings too. The
	// definition is what could be read of it, nil if that is nothing.
	Inspect func(ctx context.Context, src []byte, file string) (*sentinels.Definition, sentinels.Problems)
	// Context ends with the engine. The checks of methods without a context end with it.
	Context context.Context
	// DecodeOptions are those of the step types that are live now.
	DecodeOptions func(file string) sentinels.DecodeOptions
	// Commands are those that bounds of revisions name. Default nil: there are none.
	Commands external.Commands
	// Chain returns the chain of a run, see [revision.SaveOptions].
	Chain func(sentinels.RunID) (hops int, path []string)
	// ChainAt returns the chain of a change of a file of a sentinel at a time. Default nil: it has none.
	ChainAt func(id sentinels.ID, at time.Time) (hops int, path []string)
	// Writable returns why the engine accepts nothing new, nil if it does.
	Writable func() error
	// Await waits until a commit is done on behalf of a client, or returns the error
	// unavailable if the store stalls.
	Await func(context.Context, *store.Ticket) error
	// Saved is called with a context that does not end after each commit, before the
	// method that made it returns. An error is logged: the revision is durable.
	Saved func(context.Context, sentinels.ID) error
	Log   *slog.Logger
}

// Tables are where definitions are kept, a part of [store.Store].
type Tables interface {
	Enqueue(b store.Batch) *store.Ticket
	Get(bucket string, key []byte) (value []byte, found bool, err error)
	Scan(bucket string, prefix, after []byte, reverse bool, fn func(key, value []byte) bool) error
}

// Store holds the revisions of definitions.
//
// # Concurrency
//
// Safe for concurrent use. No mutex is held while definitions are decoded or the
// disk is waited for.
type Store struct {
	opt     Options
	decoded *decodedCache
	heads   headList

	admission *fairqueue.Queue // its one place is that of a write which counts the revisions of its owner

	mu        sync.Mutex
	followers []func(revision.Stored) // replaced, never changed
}

// both returns the commands that two bounds allow.
func (s *Store) both(a, b []string) []string { return external.Both(s.opt.Commands, a, b) }

// New returns the definitions of a store.
func New(opt Options) *Store {
	return &Store{opt: opt, decoded: newDecodedCache(), admission: fairqueue.New(1)}
}

// Follow calls fn with every new revision from now on, tombstones included, when it
// is durable. The calls come one after the other, in the order of the commits, on the
// goroutine that delivers the tickets of the engine's store: fn must neither block nor
// wait for a commit. Followers stay as long as the Store.
func (s *Store) Follow(fn func(revision.Stored)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.followers = append(slices.Clip(s.followers), fn)
}

// notify calls the followers with a revision that became durable.
func (s *Store) notify(r revision.Stored) {
	s.mu.Lock()
	followers := s.followers
	s.mu.Unlock()
	for _, f := range followers {
		f(r)
	}
}

// follow waits until a commit with revisions is durable and their triggers follow. If the context of the caller ends
// before, the commit is done nevertheless, and the triggers follow when it is: those of a deleted sentinel
// would go on firing.
func (s *Store) follow(ctx context.Context, ticket *store.Ticket, list ...revision.Stored) error {
	err := s.opt.Await(ctx, ticket)
	if err == nil {
		for _, r := range list {
			s.saved(ctx, r)
		}
	}
	if err == nil || ctx.Err() == nil {
		return err
	}
	go func() {
		if s.opt.Await(s.opt.Context, ticket) != nil {
			return // it was refused, or the engine ends
		}
		for _, r := range list {
			s.opt.Log.Warn("an edit is stored whose caller has given up", "sentinel", r.ID, "revision", r.Revision)
			s.saved(s.opt.Context, r)
		}
	}()
	return err
}

// saved reports a commit to the engine. The revision is durable, whether the
// context of the caller ends or its triggers cannot be armed.
func (s *Store) saved(ctx context.Context, r revision.Stored) {
	if err := s.opt.Saved(context.WithoutCancel(ctx), r.ID); err != nil {
		s.opt.Log.Error("triggers cannot follow a definition", "sentinel", r.ID, "revision", r.Revision, "error", err)
	}
}

// Head returns the newest revision, which may be a tombstone; one of revision
// 0 if the id was never used. An empty id is the error bad_fields.
func (s *Store) Head(id sentinels.ID) (revision.Stored, error) {
	if id == "" {
		return revision.Stored{}, &abi.Error{Code: abi.BadFields, Permanent: true, Field: "sentinelId", Message: "the id of the sentinel is empty", Hint: "`sentinel list` shows the ids"}
	}
	raw, ok, err := s.opt.Store.Get(Bucket, []byte(id))
	if err != nil || !ok {
		return revision.Stored{ID: id}, err
	}
	head, err := Read(raw)
	if err != nil {
		return revision.Stored{}, fmt.Errorf("read definition %q: %w", id, err)
	}
	return head, nil
}

// Stored reports whether a definition is stored and not deleted. One that cannot be read counts as stored.
func (s *Store) Stored(id sentinels.ID) bool {
	head, err := s.Head(id)
	return err != nil || head.Revision > 0 && !head.Deleted
}

// Get returns the newest revision of a definition, or the error not_found if it is
// deleted or was never saved.
func (s *Store) Get(id sentinels.ID) (revision.Stored, error) {
	head, err := s.Head(id)
	if err != nil {
		return revision.Stored{}, err
	}
	if head.Revision == 0 || head.Deleted {
		e := failure.New(abi.NotFound, "no sentinel has the id %q", id)
		if near := sentinels.Suggest(string(id), s.ids()); len(near) > 0 {
			e.Hint = fmt.Sprintf("did you mean %q?", near[0])
		}
		return revision.Stored{}, e
	}
	return head, nil
}

func (s *Store) ids() []string {
	if ids := s.heads.known(); ids != nil {
		return ids
	}
	all, _ := s.List()
	ids := make([]string, 0, len(all))
	for _, head := range all {
		ids = append(ids, string(head.ID))
	}
	return ids
}

// Each calls fn with the newest revision of each definition that is not deleted and whose id is
// behind after, by id, until fn returns false. It reads no further than that. What fn gets must
// not be changed.
func (s *Store) Each(after sentinels.ID, fn func(revision.Stored) bool) error {
	if kept, ok, _ := s.heads.get(); ok {
		for _, head := range kept {
			if head.ID > after && !fn(head) {
				break
			}
		}
		return nil
	}
	var from []byte
	if after != "" {
		from = []byte(after)
	}
	var bad error
	err := s.opt.Store.Scan(Bucket, nil, from, false, func(key, value []byte) bool {
		if !IsHead(key) {
			return true
		}
		head, err := Read(value)
		if err != nil {
			bad = errors.Join(bad, fmt.Errorf("read definition %q: %w", key, err))
			return true
		}
		return head.Deleted || fn(head)
	})
	return errors.Join(err, bad)
}

// List returns the newest revision of every definition that is not deleted, by id.
// All callers share their texts: they must not be changed.
func (s *Store) List() ([]revision.Stored, error) {
	kept, ok, version := s.heads.get()
	if ok {
		return kept, nil
	}
	var out []revision.Stored
	var bad error
	err := s.opt.Store.Scan(Bucket, nil, nil, false, func(key, value []byte) bool {
		if !IsHead(key) {
			return true
		}
		head, err := Read(value)
		switch {
		case err != nil:
			bad = errors.Join(bad, fmt.Errorf("read definition %q: %w", key, err))
		case !head.Deleted:
			out = append(out, head)
		}
		return true
	})
	if err = errors.Join(err, bad); err == nil {
		s.heads.put(out, version)
	}
	return out, err
}
