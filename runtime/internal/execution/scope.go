package execution

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/runtime/internal/execution/step"
	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/values"
)

// A scope reads the variables that a list of steps sees: those of the run, or of
// a branch of a parallel block. Only records change them, see [liveRun.Write].
//
// # Concurrency
//
// Safe for concurrent use. Values are never changed in place.
type scope struct {
	run  *liveRun
	vars *history.Scope
}

// runScope returns the scope of the run's top-level steps in the current iteration.
func (r *liveRun) runScope() scope {
	r.mu.Lock()
	defer r.mu.Unlock()
	return scope{r, r.folded.Scope}
}

// BranchScope implements [step.State].
func (r *liveRun) BranchScope(key string) step.Scope {
	r.mu.Lock()
	defer r.mu.Unlock()
	return scope{r, r.folded.Branches[key]}
}

// Get implements [step.Scope].
func (s scope) Get(name string) (json.RawMessage, bool) {
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	v, ok := s.vars.Variables[name]
	return v.Content(), ok
}

// Last implements [step.Scope].
func (s scope) Last() json.RawMessage {
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	return s.vars.Last.Content()
}

// Size implements [step.Scope].
func (s scope) Size() int64 {
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	return s.vars.Size()
}

// Variables implements [step.Scope].
func (s scope) Variables() map[string]json.RawMessage {
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	variables := values.Contents(s.vars.Variables)
	maps.DeleteFunc(variables, func(name string, _ json.RawMessage) bool { return strings.HasPrefix(name, history.KeptPrefix) })
	return variables
}

// Order implements [step.Scope].
func (s scope) Order() []string {
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	return slices.Clone(s.vars.Order)
}

// values returns the variables and kept outputs as they are recorded.
func (s scope) values() map[string]journal.Value {
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	return maps.Clone(s.vars.Variables)
}
