package glob

import (
	"math/bits"
	"strings"
)

// Work counts the segments that a match compares with components of a path.
func (p Pattern) Work(name string) (n int) {
	for _, a := range p.alternatives {
		parts := strings.Split(name, "/")
		for i := range parts {
			set, _ := a.walk(strings.Join(parts[:i], "/"), true)
			if i == 0 {
				set = a.with(0, 0)
			}
			n += bits.OnesCount64(set)
		}
	}
	return n
}
