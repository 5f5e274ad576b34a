package runtime

import (
	"container/list"
	"crypto/sha256"
	"sync"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// definitionCacheBytes bounds the text of the definitions that are kept read.
// What they take in memory is about five times that.
const definitionCacheBytes = 8 << 20

// A definitionCache keeps stored definitions read, so that a thousand runs of
// one do not read it a thousand times and a list reads none. A definition means
// the same only as long as the step types are the same, and every change of
// those makes a new TypeSet.
//
// # Concurrency
//
// Safe for concurrent use. Definitions are immutable, so all callers share one.
type definitionCache struct {
	mu    sync.Mutex
	bytes int
	order *list.List // of *cachedDefinition, the last used first
	byKey map[definitionKey]*list.Element
}

// definitionKey is the text, not the hash that a caller claims.
type definitionKey struct {
	text  [sha256.Size]byte
	types *sentinels.TypeSet
}

type cachedDefinition struct {
	key   definitionKey
	bytes int
	def   *sentinels.Definition
	hash  string // of def: computing it takes longer than finding it here
}

func newDefinitionCache() *definitionCache {
	return &definitionCache{order: list.New(), byKey: map[definitionKey]*list.Element{}}
}

func (c *definitionCache) get(key definitionKey) *cachedDefinition {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byKey[key]
	if e == nil {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*cachedDefinition)
}

func (c *definitionCache) put(d *cachedDefinition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKey[d.key] != nil {
		return
	}
	c.byKey[d.key] = c.order.PushFront(d)
	c.bytes += d.bytes
	for c.bytes > definitionCacheBytes && c.order.Len() > 1 {
		last := c.order.Remove(c.order.Back()).(*cachedDefinition)
		delete(c.byKey, last.key)
		c.bytes -= last.bytes
	}
}

// decodeStored reads a definition that was checked when it was stored, and
// returns it with its hash. Problems mean that a step type is gone.
func (rt *Runtime) decodeStored(text []byte, id sentinels.ID) (*sentinels.Definition, string, error) {
	return rt.decodeStoredWith(text, rt.decodeOptions(string(id)))
}

// decodeStoredWith is decodeStored for other step types than those that are
// live now.
func (rt *Runtime) decodeStoredWith(text []byte, opt sentinels.DecodeOptions) (*sentinels.Definition, string, error) {
	key := definitionKey{sha256.Sum256(text), opt.Types}
	if d := rt.decoded.get(key); d != nil {
		return d.def, d.hash, nil
	}
	def, problems := sentinels.Decode(text, opt)
	if err := problemsError(problems); err != nil {
		return nil, "", err
	}
	hash := def.Hash()
	rt.decoded.put(&cachedDefinition{key: key, bytes: len(text), def: def, hash: hash})
	return def, hash, nil
}

// Decoded returns the definition that s holds. All callers share it: it must
// not be changed.
func (rt *Runtime) Decoded(s Stored) (*sentinels.Definition, error) {
	if s.Deleted {
		return nil, deletedError(s)
	}
	def, _, err := rt.decodeStored(s.Definition, s.ID)
	return def, err
}
