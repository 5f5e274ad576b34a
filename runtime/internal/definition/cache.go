package definition

import (
	"container/list"
	"crypto/sha256"
	"sync"

	"github.com/sentinel-runtime/sentinel/runtime/revision"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// decodedBytes bounds the text of the definitions that are kept decoded. They take
// about five times that in memory.
const decodedBytes = 8 << 20

// A decodedCache keeps the stored definitions that were used last decoded, so that a
// thousand runs of one do not decode it a thousand times and a list decodes none. A
// definition has the same meaning only as long as the step types are the same, and every
// change of those makes a new TypeSet.
//
// # Concurrency
//
// Safe for concurrent use. Definitions are immutable, so all callers share one.
type decodedCache struct {
	mu    sync.Mutex
	bytes int
	order *list.List // of *decoded, the last used first
	byKey map[decodedKey]*list.Element
}

// A decodedKey has the digest of the text, not the hash that a caller claims.
type decodedKey struct {
	text  [sha256.Size]byte
	types *sentinels.TypeSet
}

type decoded struct {
	key   decodedKey
	bytes int
	def   *sentinels.Definition
	hash  string // of def: computing it takes longer than finding it here
}

func newDecodedCache() *decodedCache {
	return &decodedCache{order: list.New(), byKey: map[decodedKey]*list.Element{}}
}

func (c *decodedCache) get(key decodedKey) *decoded {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byKey[key]
	if e == nil {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*decoded)
}

func (c *decodedCache) put(d *decoded) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKey[d.key] != nil {
		return
	}
	c.byKey[d.key] = c.order.PushFront(d)
	c.bytes += d.bytes
	for c.bytes > decodedBytes && c.order.Len() > 1 {
		last := c.order.Remove(c.order.Back()).(*decoded)
		delete(c.byKey, last.key)
		c.bytes -= last.bytes
	}
}

// DecodeStored decodes a definition that was checked when it was stored, with the step
// types that are live now, and returns it with its hash. Problems mean that a step type
// was removed. All callers share the definition: it must not be changed.
func (s *Store) DecodeStored(text []byte, id sentinels.ID) (*sentinels.Definition, string, error) {
	return s.DecodeStoredWith(text, s.opt.DecodeOptions(string(id)))
}

// DecodeStoredWith is DecodeStored for other step types than those that are live now.
func (s *Store) DecodeStoredWith(text []byte, opt sentinels.DecodeOptions) (*sentinels.Definition, string, error) {
	key := decodedKey{sha256.Sum256(text), opt.Types}
	if d := s.decoded.get(key); d != nil {
		return d.def, d.hash, nil
	}
	def, problems := sentinels.Decode(text, opt)
	if len(problems) > 0 {
		return nil, "", problems
	}
	hash := def.Hash()
	s.decoded.put(&decoded{key: key, bytes: len(text), def: def, hash: hash})
	return def, hash, nil
}

// Decoded returns the definition of a revision, or the error not_found for a
// tombstone. All callers share it: it must not be changed.
func (s *Store) Decoded(r revision.Stored) (*sentinels.Definition, error) {
	if r.Deleted {
		return nil, deletedError(r)
	}
	def, _, err := s.DecodeStored(r.Definition, r.ID)
	return def, err
}

// Decode reads a definition from outside and reports every error.
func (s *Store) Decode(src []byte, file string) (*sentinels.Definition, sentinels.Problems) {
	def, problems := s.opt.Inspect(s.opt.Context, src, file)
	if errs := problems.Errors(); len(errs) > 0 {
		return nil, errs
	}
	return def, nil
}

// DecodeOptions returns those of the step types that are live now.
func (s *Store) DecodeOptions(file string) sentinels.DecodeOptions { return s.opt.DecodeOptions(file) }
