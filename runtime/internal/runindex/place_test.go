package runindex_test

import (
	"path/filepath"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime/internal/runindex"
)

// TestProject: what is stored relative to a project is in the project wherever that is.
func TestProject(t *testing.T) {
	base := t.TempDir()
	p, other := runindex.Project(filepath.Join(base, "p")), runindex.Project(filepath.Join(base, "q"))
	for _, c := range []struct{ workspace, stored, moved string }{
		{string(p), ".", string(other)},
		{filepath.Join(string(p), "a", "b"), "./a/b", filepath.Join(string(other), "a", "b")},
		{base, base, base},
		{string(p) + "x", string(p) + "x", string(p) + "x"},
		{"", "", ""},
	} {
		if got := p.Relative(c.workspace); got != c.stored {
			t.Errorf("%s is stored as %q, want %q", c.workspace, got, c.stored)
		}
		if got := p.Absolute(c.stored); got != c.workspace {
			t.Errorf("%q is %s, want %s", c.stored, got, c.workspace)
		}
		if got := other.Absolute(c.stored); got != c.moved {
			t.Errorf("%q is %s after a move, want %s", c.stored, got, c.moved)
		}
		if got := runindex.Project("").Relative(c.workspace); got != c.workspace {
			t.Errorf("without a project: %q", got)
		}
	}
}
