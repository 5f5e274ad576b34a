package linediff

import (
	"slices"
)

// maxAlign limits the insertions and removals that an alignment considers; its time
// and memory grow with their square. Texts that differ more are treated as entirely
// different.
const maxAlign = 1000

// Align returns the pairs of a longest common subsequence of a and b, in order.
// It uses the greedy algorithm of Myers (An O(ND) difference algorithm, 1986), which
// is fast if the texts differ little.
func Align(a, b []string) [][2]int {
	// Equal items at both ends need no search. Usually that is nearly all, because an
	// edit changes one place.
	var pairs [][2]int
	start := 0
	for start < len(a) && start < len(b) && a[start] == b[start] {
		pairs = append(pairs, [2]int{start, start})
		start++
	}
	end := 0
	for end < len(a)-start && end < len(b)-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	for _, p := range alignMiddle(a[start:len(a)-end], b[start:len(b)-end]) {
		pairs = append(pairs, [2]int{p[0] + start, p[1] + start})
	}
	for i := end; i > 0; i-- {
		pairs = append(pairs, [2]int{len(a) - i, len(b) - i})
	}
	return pairs
}

// alignMiddle aligns texts that begin and end differently.
func alignMiddle(a, b []string) [][2]int {
	n, m := len(a), len(b)
	if n == 0 || m == 0 {
		return nil
	}
	// reach[k+limit] is the offset in a that the diagonal k = x-y has reached.
	limit := min(n+m, maxAlign)
	reach := make([]int, 2*limit+2)
	var steps [][]int // reach before each round, for backtracking
	for d := 0; d <= limit; d++ {
		steps = append(steps, slices.Clone(reach[limit-d:limit+d+2]))
		// Diagonals of one round have the same parity, so a round reads only values
		// of the round before.
		for k := -d; k <= d; k += 2 {
			x := 0
			switch {
			case d == 0: // no insertion or removal yet
			// A removal from the diagonal above or an insertion from the one below,
			// whichever has reached further; if equal, the removal.
			case k == -d || k != d && reach[limit+k-1] < reach[limit+k+1]:
				x = reach[limit+k+1]
			default:
				x = reach[limit+k-1] + 1
			}
			for x < n && x-k < m && x-k >= 0 && a[x] == b[x-k] {
				x++
			}
			reach[limit+k] = x
			if x >= n && x-k >= m { // both texts are used up
				return backtrack(steps, n, m)
			}
		}
	}
	return nil // more than maxAlign differences
}

// backtrack follows the rounds of alignMiddle from the end and collects the equal
// items.
func backtrack(steps [][]int, x, y int) [][2]int {
	var pairs [][2]int
	for d := len(steps) - 1; d >= 0; d-- {
		before := steps[d] // diagonals -d to d+1
		at := func(k int) int {
			if k < -d || k > d+1 {
				return -1
			}
			return before[k+d]
		}
		k := x - y
		fromX, fromY := 0, 0
		if d > 0 {
			from := k - 1
			if k == -d || k != d && at(k-1) < at(k+1) {
				from = k + 1
			}
			fromX = at(from)
			fromY = fromX - from
		}
		// The diagonal, back to the difference of this round.
		for x > fromX && y > fromY {
			x, y = x-1, y-1
			pairs = append(pairs, [2]int{x, y})
		}
		x, y = fromX, fromY
	}
	slices.Reverse(pairs)
	return pairs
}
