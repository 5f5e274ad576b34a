package runtime

import (
	"encoding/json"

	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
)

// A scope reads the variables that a list of steps sees: those of the run, or of
// a branch of a parallel block. Only records change them, see [run.write].
//
// # Concurrency
//
// Safe for concurrent use. Values are never changed in place.
type scope struct {
	run  *run
	vars *history.Scope
}

// runScope returns the scope of the run's own steps until the iteration ends.
func (r *run) runScope() scope {
	r.mu.Lock()
	defer r.mu.Unlock()
	return scope{r, r.state.Scope}
}

// branchScope returns the scope of an open parallel branch.
func (r *run) branchScope(key string) scope {
	r.mu.Lock()
	defer r.mu.Unlock()
	return scope{r, r.state.Branches[key]}
}

func (s scope) get(name string) (json.RawMessage, bool) {
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	v, ok := s.vars.Variables[name]
	return v.Content(), ok
}

// last returns the output of the step that ended last, nil if there is none.
func (s scope) last() json.RawMessage {
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	return s.vars.Last.Content()
}

// size returns the size of the variables, names and values, in bytes.
func (s scope) size() int64 {
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	return s.vars.Size()
}

// variables returns a copy of the variables; the values are shared.
func (s scope) variables() map[string]json.RawMessage {
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	return contents(s.vars.Variables)
}

func contents(values map[string]journal.Value) map[string]json.RawMessage {
	raw := make(map[string]json.RawMessage, len(values))
	for name, v := range values {
		raw[name] = v.Content()
	}
	return raw
}
