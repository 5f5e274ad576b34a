package sentinels

import (
	"slices"
)

// A match says what each item of an edited list was before.
type match struct {
	from  []int  // by new place: the old place, -1 for an item that is new
	moved []bool // by new place: the item stands in another order than it did
}

// matchItems finds the items of a list again in its edited form: those that are
// equal, in their order; between these the ones that are alike, as an edited
// step is; then the equal ones that stand elsewhere.
func matchItems(before, after [][]byte) match {
	a, b := canonicals(before), canonicals(after)
	m := match{from: make([]int, len(b)), moved: make([]bool, len(b))}
	for j := range m.from {
		m.from[j] = -1
	}
	used := make([]bool, len(a))
	// The pair behind the ends closes the last gap like any other.
	pairs := append(align(a, b), [2]int{len(a), len(b)})
	i, j := 0, 0
	for _, p := range pairs {
		m.alike(before, after, used, i, p[0], j, p[1])
		if p[1] < len(b) {
			m.from[p[1]], used[p[0]] = p[0], true
		}
		i, j = p[0]+1, p[1]+1
	}
	m.findMoved(a, b, used)
	return m
}

// findMoved looks for what is new in one place and gone from another.
func (m *match) findMoved(a, b []string, used []bool) {
	gone := map[string][]int{}
	for i := range a {
		if !used[i] {
			gone[a[i]] = append(gone[a[i]], i)
		}
	}
	for j := range b {
		if places := gone[b[j]]; m.from[j] < 0 && len(places) > 0 {
			m.from[j], m.moved[j] = places[0], true
			gone[b[j]] = places[1:]
		}
	}
}

// maxAlike is how many items between two equal ones are compared each with each.
const maxAlike = 64

// alike pairs the items i..iEnd and j..jEnd so that the order is kept and the
// likeness in all is greatest.
func (m *match) alike(before, after [][]byte, used []bool, i, iEnd, j, jEnd int) {
	n, k := iEnd-i, jEnd-j
	if n == 0 || k == 0 || n > maxAlike || k > maxAlike {
		return // so much at once is no edit of single items
	}
	likeness := make([][]int, n+1) // best of the rest, from x in the old and y in the new
	own := make([][]int, n)        // of one pair
	for x := range likeness {
		likeness[x] = make([]int, k+1)
	}
	for x := n - 1; x >= 0; x-- {
		own[x] = make([]int, k)
		for y := k - 1; y >= 0; y-- {
			own[x][y] = howAlike(before[i+x], after[j+y])
			likeness[x][y] = max(likeness[x+1][y], likeness[x][y+1])
			if own[x][y] > 0 {
				likeness[x][y] = max(likeness[x][y], own[x][y]+likeness[x+1][y+1])
			}
		}
	}
	// The way that gave the best, from the front: early items pair first.
	for x, y := 0, 0; x < n && y < k; {
		switch {
		case own[x][y] > 0 && likeness[x][y] == own[x][y]+likeness[x+1][y+1]:
			m.from[j+y], used[i+x] = i+x, true
			x, y = x+1, y+1
		case likeness[x][y] == likeness[x+1][y]:
			x++
		default:
			y++
		}
	}
}

// howAlike says how much two values that differ have in common; 0 is nothing,
// so that one took the other's place.
func howAlike(a, b []byte) int {
	if a[0] != b[0] {
		return 0
	}
	switch a[0] {
	case '[':
		return 1 // branches have nothing to be known by but their place
	case '{':
	default:
		return 1 // a text or number that changed in its place
	}
	members := map[string][]byte{}
	eachMember(a, func(name, value []byte) bool { members[string(name)] = value; return true })
	// An id is given to be known by: the same one outweighs all else, and two
	// different ones are two steps, however alike.
	if members[`"id"`] != nil {
		if id, ok := part(b, "id", -1); ok && string(id) == string(members[`"id"`]) {
			return 1000
		} else if ok {
			return 0
		}
	}
	// Otherwise what they share: a member that is equal counts twice one that is
	// merely there in both. 100 is about "all but one of two".
	equal, all := 0, len(members)
	eachMember(b, func(name, value []byte) bool {
		old, ok := members[string(name)]
		switch {
		case ok && string(old) == string(value):
			equal += 2
		case ok:
			equal++
		default:
			all++
		}
		return true
	})
	// A step of another type is another step, even with the same variable.
	if string(members[`"type"`]) != typeOf(b) || equal < 2 {
		return 0
	}
	return 100 * equal / max(all, 1)
}

// typeOf returns the step type as written, with its quotes; "" outside of steps.
func typeOf(object []byte) string {
	t, _ := part(object, "type", -1)
	return string(t)
}

// canonicals returns items in the one spelling by which they are compared.
func canonicals(items [][]byte) []string {
	out := make([]string, len(items))
	for i, item := range items {
		out[i] = string(appendCanonical(nil, item))
	}
	return out
}

// itemsOf and membersOf split values of the compact form, which has no white
// space around its parts.
func itemsOf(array []byte) [][]byte {
	var items [][]byte
	eachItem(array, func(value []byte) bool { items = append(items, value); return true })
	return items
}

// A rawMember is one key of an object with its value as written.
type rawMember struct {
	name  string
	value []byte
}

func membersOf(object []byte) []rawMember {
	var members []rawMember
	eachMember(object, func(name, value []byte) bool {
		members = append(members, rawMember{unquote(name), value})
		return true
	})
	return members
}

// memberOf returns the value of a key, nil if it is not there.
func memberOf(members []rawMember, name string) []byte {
	if i := slices.IndexFunc(members, func(m rawMember) bool { return m.name == name }); i >= 0 {
		return members[i].value
	}
	return nil
}

// sameValue reports whether two values are one but for their spelling.
func sameValue(a, b []byte) bool {
	return string(a) == string(b) || string(appendCanonical(nil, a)) == string(appendCanonical(nil, b))
}
