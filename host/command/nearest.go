package command

import "strings"

// nearest returns the candidate that want was probably meant to be, or "" if
// none is close: at most one edit for every three characters, or one contained
// in the other.
func nearest(want string, candidates []string) string {
	best, bestAt := "", len(want)/3+1
	folded := strings.ToLower(want)
	for _, c := range candidates {
		if d := distance(folded, strings.ToLower(c)); d < bestAt || (d == bestAt && best == "") {
			best, bestAt = c, d
		}
	}
	if best != "" {
		return best
	}
	for _, c := range candidates {
		l := strings.ToLower(c)
		if len(folded) > 2 && (strings.Contains(l, folded) || strings.Contains(folded, l)) {
			return c
		}
	}
	return ""
}

// distance counts insertions, deletions, substitutions and swaps of neighbours.
// Names over 64 bytes count as far apart, so that hostile input stays cheap.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	var before, above []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, above, row = above, row, make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(above[j]+1, row[j-1]+1, above[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
