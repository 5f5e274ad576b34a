package runtime

import (
	"encoding/json"
	"maps"
	"sync"
)

// A scope is the variables that a step list sees. The run has one; each branch
// of a parallel block has its own, which starts as a snapshot and whose writes
// are applied to the scope it came from at the join, in branch order.
//
// # Concurrency
//
// Safe for concurrent use. Values are never changed in place.
type scope struct {
	mu    sync.Mutex
	vars  map[string]json.RawMessage
	last  json.RawMessage // output of the step that ended last
	bytes int64           // of names and values
	wrote []string        // names in the order of their first write; for a branch's join
	track bool
}

func newScope() *scope { return &scope{vars: map[string]json.RawMessage{}} }

func (s *scope) get(name string) (json.RawMessage, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.vars[name]
	return v, ok
}

func (s *scope) set(name string, value json.RawMessage) {
	if name == "" {
		return
	}
	if value == nil {
		value = json.RawMessage("null")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old, had := s.vars[name]
	if !had {
		s.bytes += int64(len(name))
	}
	s.bytes += int64(len(value) - len(old))
	s.vars[name] = value
	if s.track {
		s.wrote = append(s.wrote, name)
	}
}

func (s *scope) unset(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, had := s.vars[name]; had {
		s.bytes -= int64(len(name) + len(old))
		delete(s.vars, name)
	}
}

func (s *scope) setLast(v json.RawMessage) {
	s.mu.Lock()
	s.last = v
	s.mu.Unlock()
}

func (s *scope) lastValue() json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

func (s *scope) size() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes
}

// snapshot returns a copy of the variables; the values are shared.
func (s *scope) snapshot() map[string]json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.vars)
}

// replace sets all variables at once, as recovery does.
func (s *scope) replace(vars map[string]json.RawMessage, last json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.vars, s.last, s.bytes = vars, last, 0
	if s.vars == nil {
		s.vars = map[string]json.RawMessage{}
	}
	for k, v := range s.vars {
		s.bytes += int64(len(k) + len(v))
	}
}

// branch returns a scope that starts as a snapshot of s and remembers what is
// written to it.
func (s *scope) branch() *scope {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &scope{vars: maps.Clone(s.vars), last: s.last, bytes: s.bytes, track: true}
}

// join applies what was written to b. Call it once per branch, in branch order.
func (s *scope) join(b *scope) {
	b.mu.Lock()
	wrote, vars := b.wrote, b.vars
	b.mu.Unlock()
	for _, name := range wrote {
		s.set(name, vars[name])
	}
}
