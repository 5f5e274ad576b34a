package confine

import (
	"errors"
	"sync"
	"testing"
)

// Lower makes this machine one without namespaces, or with an older version of Landlock, 0 for
// none, until the test ends.
func Lower(t testing.TB, namespaces bool, landlock int) {
	have := kernel()
	if have.namespaces != nil && namespaces {
		t.Skip("this machine has no namespaces: ", have.namespaces)
	}
	before := kernel
	t.Cleanup(func() { kernel = before })
	have.landlock = min(have.landlock, landlock)
	if !namespaces {
		have.namespaces = errors.New("lowered by a test")
	}
	kernel = sync.OnceValue(func() machine { return have })
}
