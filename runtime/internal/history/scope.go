package history

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
)

// A Scope is the variables that a list of steps sees. The run has one. Each
// branch of a parallel block has its own: a copy, whose writes are applied to
// the scope that it was copied from when the block ends.
type Scope struct {
	Variables map[string]journal.Value // nil if none was ever set
	Last      journal.Value            // value of the step that ended last
	Order     []string                 // names of the variables that this run has set, the newest last
	// Written are the names of the variables that a branch has set, in order. It
	// is nil in a scope that is not a branch.
	Written []string

	branch bool
	size   int64
}

// newScope returns a scope with a copy of some variables; order are the names of those
// that the run has set.
func newScope(variables map[string]journal.Value, order []string, last journal.Value) *Scope {
	s := &Scope{Last: last, Order: slices.Clone(order)}
	if len(variables) > 0 {
		s.Variables = maps.Clone(variables)
	}
	for name, v := range s.Variables {
		s.size += int64(len(name)) + v.Len()
	}
	return s
}

// Size returns the size of the variables, names and values, in bytes.
func (s *Scope) Size() int64 { return s.size }

func (s *Scope) set(name string, v journal.Value) {
	if name == "" {
		return
	}
	if v.Empty() {
		v = journal.Value{JSON: json.RawMessage("null")}
	}
	s.remove(name)
	if s.Variables == nil {
		s.Variables = map[string]journal.Value{}
	}
	s.Variables[name] = v
	s.size += int64(len(name)) + v.Len()
	if !strings.HasPrefix(name, KeptPrefix) {
		if i := slices.Index(s.Order, name); i >= 0 {
			s.Order = slices.Delete(s.Order, i, i+1)
		}
		s.Order = append(s.Order, name)
	}
	if s.branch {
		s.Written = append(s.Written, name)
	}
}

// setAll sets variables, small and large ones, in the order of their names, so that every fold of the records
// has the same Order.
func (s *Scope) setAll(variables map[string]json.RawMessage, large map[string]journal.Value) {
	names := slices.AppendSeq(slices.Collect(maps.Keys(variables)), maps.Keys(large))
	slices.Sort(names)
	for _, name := range names {
		if v, ok := large[name]; ok {
			s.set(name, v)
		} else {
			s.set(name, journal.Value{JSON: variables[name]})
		}
	}
}

func (s *Scope) remove(name string) {
	if v, ok := s.Variables[name]; ok {
		s.size -= int64(len(name)) + v.Len()
		delete(s.Variables, name)
	}
}

// newBranch returns a copy of the scope that notes what is written to it.
func (s *Scope) newBranch() *Scope {
	return &Scope{Variables: maps.Clone(s.Variables), Last: s.Last, Order: slices.Clone(s.Order), size: s.size, branch: true}
}

// join applies the writes of a branch. Branches are joined in their order.
func (s *Scope) join(b *Scope) {
	for _, name := range b.Written {
		s.set(name, b.Variables[name])
	}
}
