package sentinels

import "github.com/sentinel-runtime/sentinel/internal/linediff"

// A match has, for each item of an edited list, its index in the old list.
type match struct {
	from  []int  // by new index: the old index, -1 for a new item
	moved []bool // by new index: whether the item is out of the old order
}

// matchItems matches the items of a list with those of its edited form: first equal
// items in the same order, then similar items between these, such as an edited step,
// then equal items in another order.
func matchItems(before, after []*node) match {
	a, b := canonicals(before), canonicals(after)
	m := match{from: make([]int, len(b)), moved: make([]bool, len(b))}
	for j := range m.from {
		m.from[j] = -1
	}
	used := make([]bool, len(a))
	// A pair after both ends, so that the last gap is handled as the others.
	pairs := append(linediff.Align(a, b), [2]int{len(a), len(b)})
	i, j := 0, 0
	for _, p := range pairs {
		m.pairSimilar(before, after, used, i, p[0], j, p[1])
		if p[1] < len(b) {
			m.from[p[1]], used[p[0]] = p[0], true
		}
		i, j = p[0]+1, p[1]+1
	}
	m.findMoved(a, b, used)
	return m
}

// findMoved matches added items with equal removed ones.
func (m *match) findMoved(a, b []string, used []bool) {
	removed := map[string][]int{}
	for i := range a {
		if !used[i] {
			removed[a[i]] = append(removed[a[i]], i)
		}
	}
	for j := range b {
		if indexes := removed[b[j]]; m.from[j] < 0 && len(indexes) > 0 {
			m.from[j], m.moved[j] = indexes[0], true
			removed[b[j]] = indexes[1:]
		}
	}
}

// maxSimilar is the largest number of items between two equal ones that are compared
// pair by pair.
const maxSimilar = 64

// pairSimilar pairs the items i..iEnd and j..jEnd in order, with the greatest sum of
// similarities.
func (m *match) pairSimilar(before, after []*node, used []bool, i, iEnd, j, jEnd int) {
	n, k := iEnd-i, jEnd-j
	if n == 0 || k == 0 || n > maxSimilar || k > maxSimilar {
		return // too many changes for an edit of single items
	}
	best := make([][]int, n+1) // sum for the rest, from x in the old and y in the new list
	own := make([][]int, n)    // of one pair
	for x := range best {
		best[x] = make([]int, k+1)
	}
	for x := n - 1; x >= 0; x-- {
		own[x] = make([]int, k)
		for y := k - 1; y >= 0; y-- {
			own[x][y] = similarity(before[i+x], after[j+y])
			best[x][y] = max(best[x+1][y], best[x][y+1])
			if own[x][y] > 0 {
				best[x][y] = max(best[x][y], own[x][y]+best[x+1][y+1])
			}
		}
	}
	// Follow the best sum from the front, so that early items are paired first.
	for x, y := 0, 0; x < n && y < k; {
		switch {
		case own[x][y] > 0 && best[x][y] == own[x][y]+best[x+1][y+1]:
			m.from[j+y], used[i+x] = i+x, true
			x, y = x+1, y+1
		case best[x][y] == best[x+1][y]:
			x++
		default:
			y++
		}
	}
}

// similarity returns how much two different values have in common; 0 means that one
// replaced the other.
func similarity(a, b *node) int {
	switch {
	case a.Kind != b.Kind:
		return 0
	case a.Kind != '{':
		return 1 // branches can be identified only by position; of other values one changed
	}
	// The same id outweighs everything else, and steps with different ids are
	// different steps, however similar.
	if x, y := a.Member("id"), b.Member("id"); x != nil && y != nil {
		if x.Equal(y) {
			return 1000
		}
		return 0
	}
	// Otherwise the members in common: an equal member counts twice as much as a key
	// that both have. 100 corresponds to one of two members being different.
	equal, all := 0, len(a.Members)
	for _, m := range b.Members {
		switch old := a.Member(m.Name); {
		case old == nil:
			all++
		case old.Equal(m.Value):
			equal += 2
		default:
			equal++
		}
	}
	// Steps of different types are different steps, even with the same outputTo.
	if x, y := a.Member("type"), b.Member("type"); (x == nil) != (y == nil) || x != nil && !x.Equal(y) || equal < 2 {
		return 0
	}
	return 100 * equal / max(all, 1)
}

// canonicals returns the canonical forms of items, which can be compared.
func canonicals(items []*node) []string {
	out := make([]string, len(items))
	for i, item := range items {
		out[i] = string(item.Canonical())
	}
	return out
}
