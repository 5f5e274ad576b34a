package metrics

import (
	"strings"
	"sync"
)

// other stands for all names beyond the bound.
const other = "other"

// names bounds the values of a label: the first so many keep theirs, so that
// what is there from the start stays, and no plugin can fill the memory of
// the scraper.
type names struct {
	most int
	mu   sync.RWMutex
	seen map[string]string // a name to the label's value
}

func newNames(most int) *names { return &names{most: most, seen: map[string]string{}} }

// maxName bounds one name, in bytes.
const maxName = 100

// name returns the label's value for a name.
func (n *names) name(s string) string {
	if s == "" || len(s) > maxName {
		return other
	}
	n.mu.RLock()
	v, ok := n.seen[s]
	full := len(n.seen) >= n.most
	n.mu.RUnlock()
	if ok {
		return v
	}
	if full {
		return other
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.seen) >= n.most {
		return other // added in between; the next call finds it
	}
	v = strings.ToValidUTF8(strings.Clone(s), "?")
	n.seen[strings.Clone(s)] = v
	return v
}
