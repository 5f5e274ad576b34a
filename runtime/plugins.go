package runtime

import (
	"context"
	"encoding/json"
	"maps"
	"sync"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A module executes step attempts. It is a loaded plugin; engine tests put
// Go functions here.
type module interface {
	Digest() string
	Manifest() wasm.Manifest
	Bytes() []byte
	Run(ctx context.Context, inv wasm.Invocation) (wasm.Result, error)
	Validate(ctx context.Context, stepType string, fields json.RawMessage) ([]wasm.Problem, error)
}

// pluginSet is the step types of one runtime and the modules behind them.
//
// # Concurrency
//
// Safe for concurrent use. What is live is one immutable [pluginTable]; a swap
// puts another in its place. Who works with a table or a module holds it, and
// modules that are not held any more are unloaded but for the last few: their
// code is in the store, should a parked step ask for it.
type pluginSet struct {
	rt      *Runtime
	loading sync.Mutex // held while the live plugins change; no guest of others executes under it at a load

	mu       sync.Mutex
	live     *pluginTable
	byDigest map[string]*heldModule // every module in memory
	idle     []*heldModule          // those that are not held, the oldest first
	infos    []PluginInfo
	waits    map[string]PluginInfo // by source, versions that the operator has to decide about; their code is a blob
	asked    int                   // how often all grants were asked for again
	opened   bool                  // the plugins of Open are loaded
	unkept   map[string][]byte     // code by digest that is not in the store yet: the disk was full
}

func newPluginSet(rt *Runtime) *pluginSet {
	return &pluginSet{rt: rt, live: emptyTable(), byDigest: map[string]*heldModule{}, waits: map[string]PluginInfo{}, unkept: map[string][]byte{}}
}

// keep puts a module's code into the store, where a later release finds it for a
// step that this one parked. On a full disk that is done later, see keepRest: a
// program must not fail to start without it.
func (s *pluginSet) keep(digest string, code []byte) error {
	_, err := s.rt.db.PutBlob(code)
	if !store.IsFull(err) {
		return err
	}
	s.rt.log.Warn("code of a plugin is not kept yet: the disk is full", "digest", digest, "error", err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unkept[digest] = code
	return nil
}

// keepRest puts the code into the store for which there was no space.
func (s *pluginSet) keepRest() {
	s.mu.Lock()
	rest := maps.Clone(s.unkept)
	s.mu.Unlock()
	for digest, code := range rest {
		if _, err := s.rt.db.PutBlob(code); err != nil {
			return // the next look tries again
		}
		s.mu.Lock()
		delete(s.unkept, digest)
		s.mu.Unlock()
	}
}

// wasTrusted reports whether a digest was loaded as trusted by any release: the
// store remembers the digests of built-in modules.
func (s *pluginSet) wasTrusted(digest string) bool {
	_, ok, err := s.rt.db.Get(bucketTrusted, []byte(digest))
	return ok && err == nil
}

func (s *pluginSet) typeSet() *sentinels.TypeSet {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live.types
}

// digests returns those of the modules in memory, and of those that wait.
func (s *pluginSet) digests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]string, 0, len(s.byDigest))
	for d := range s.byDigest {
		all = append(all, d)
	}
	for _, w := range s.waits {
		all = append(all, w.Digest)
	}
	return all
}
