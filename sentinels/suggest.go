package sentinels

import (
	"cmp"
	"slices"
	"strings"
)

// maxSuggested is the length of the longest name that is compared with others.
const maxSuggested = 64

// Suggest returns the candidates that are similar to a mistyped name, best first, at
// most three. It ignores case, "_", "-" and "/".
func Suggest(name string, candidates []string) []string {
	type scored struct {
		name string
		cost int
	}
	if len(name) > maxSuggested {
		return nil // longer than any name, and the time is quadratic
	}
	want := fold(name)
	limit := 1 + len(want)/4
	var found []scored
	for _, c := range candidates {
		if len(c) > maxSuggested {
			continue
		}
		have := fold(c)
		if cost := distance(want, have); cost <= limit {
			found = append(found, scored{c, cost})
		} else if len(want) >= 3 && (strings.HasPrefix(have, want) || strings.HasPrefix(want, have) && len(have) >= 3) {
			found = append(found, scored{c, limit + 1})
		}
	}
	slices.SortStableFunc(found, func(a, b scored) int { return cmp.Compare(a.cost, b.cost) })
	var names []string
	for _, f := range found {
		if found[0].cost <= 1 && f.cost > 1 {
			break // one edit is a typo of that name
		}
		if !slices.Contains(names, f.name) && len(names) < 3 {
			names = append(names, f.name)
		}
	}
	return names
}

var folder = strings.NewReplacer("_", "", "-", "", "/", "")

// fold returns the form of a name in which it is compared.
func fold(s string) string { return folder.Replace(strings.ToLower(s)) }

// distance counts the insertions, deletions, replacements and swaps of
// neighbours from a to b, in bytes (Damerau-Levenshtein, optimal string alignment).
func distance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			step := 1
			if a[i-1] == b[j-1] {
				step = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+step)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}

// oneEdit reports whether two names differ by one insertion, deletion, replacement or swap
// of neighbours. It takes the time of comparing them.
func oneEdit(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b)-len(a) > 1 {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	switch {
	case len(a) < len(b):
		return a[i:] == b[i+1:]
	case i == len(a):
		return false // they are equal
	case a[i+1:] == b[i+1:]:
		return true
	}
	return i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
}

// didYouMean returns the hint for an unknown name: similar candidates, or else all of
// them. Hidden ones are listed only if they are similar.
func didYouMean(name string, candidates []string, hidden ...string) string {
	if near := Suggest(name, slices.Concat(candidates, hidden)); len(near) > 0 {
		return "did you mean " + quotedList(near, " or ") + "?"
	}
	if len(candidates) == 0 || len(candidates) > 40 {
		return ""
	}
	return "known: " + strings.Join(candidates, ", ")
}

// quotedList returns names in quotes, with last between the final two.
func quotedList(names []string, last string) string {
	var b strings.Builder
	for i, n := range names {
		switch {
		case i > 0 && i == len(names)-1:
			b.WriteString(last)
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(`"` + n + `"`)
	}
	return b.String()
}
