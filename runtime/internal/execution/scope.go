package execution

import (
	"encoding/json"

	"github.com/sentinel-runtime/sentinel/runtime/internal/execution/step"
	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/internal/values"
)

// A scope reads the variables that a list of steps sees: those of the run, or of
// a branch of a parallel block. Only records change them, see [liveRun.write].
//
// # Concurrency
//
// Safe for concurrent use. Values are never changed in place.
type scope struct {
	run  *liveRun
	vars *history.Scope
}

// runScope returns the scope of the run's own steps until the iteration ends.
func (r *liveRun) runScope() scope {
	r.mu.Lock()
	defer r.mu.Unlock()
	return scope{r, r.folded.Scope}
}

// BranchScope returns the scope of an open parallel branch.
func (r *liveRun) BranchScope(key string) step.Scope {
	r.mu.Lock()
	defer r.mu.Unlock()
	return scope{r, r.folded.Branches[key]}
}

func (s scope) Get(name string) (json.RawMessage, bool) {
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	v, ok := s.vars.Variables[name]
	return values.Content(v), ok
}

// Last returns the output of the step that ended last, nil if there is none.
func (s scope) Last() json.RawMessage {
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	return values.Content(s.vars.Last)
}

// Size returns the size of the variables, names and values, in bytes.
func (s scope) Size() int64 {
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	return s.vars.Size()
}

// Variables returns a copy of the variables; the values are shared.
func (s scope) Variables() map[string]json.RawMessage {
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	return values.Contents(s.vars.Variables)
}
