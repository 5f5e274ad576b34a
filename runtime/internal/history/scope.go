package history

import (
	"encoding/json"
	"maps"

	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
)

// A Scope is the variables that a list of steps sees. The run has one. Each
// branch of a parallel block has its own: a copy, whose writes are applied to
// the scope that it was copied from when the block ends.
type Scope struct {
	Variables map[string]journal.Value
	Last      journal.Value // output of the step that ended last
	// Written are the names of the variables that a branch has set, in order. It
	// is nil in a scope that is not a branch.
	Written []string

	branch bool
}

func newScope() *Scope { return &Scope{Variables: map[string]journal.Value{}} }

// IsBranch reports whether the scope is that of a branch.
func (s *Scope) IsBranch() bool { return s.branch }

func (s *Scope) set(name string, v journal.Value) {
	if name == "" {
		return
	}
	if v.Empty() {
		v = journal.Value{JSON: json.RawMessage("null")}
	}
	s.Variables[name] = v
	if s.branch {
		s.Written = append(s.Written, name)
	}
}

// newBranch returns a copy of the scope that notes what is written to it.
func (s *Scope) newBranch() *Scope {
	return &Scope{Variables: maps.Clone(s.Variables), Last: s.Last, branch: true}
}

// join applies the writes of a branch. Branches are joined in their order.
func (s *Scope) join(b *Scope) {
	for _, name := range b.Written {
		s.set(name, b.Variables[name])
	}
}
