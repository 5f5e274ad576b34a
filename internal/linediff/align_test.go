package linediff

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// longest returns the length of a longest common subsequence, by dynamic programming.
func longest(a, b []string) int {
	best := make([][]int, len(a)+1)
	for i := range best {
		best[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if best[i][j] = max(best[i+1][j], best[i][j+1]); a[i] == b[j] {
				best[i][j] = best[i+1][j+1] + 1
			}
		}
	}
	return best[0][0]
}

// TestAlignIsLongest compares the length of alignments with that oracle.
func TestAlignIsLongest(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	text := func() []string {
		out := make([]string, rng.IntN(30))
		for i := range out {
			out[i] = string(rune('a' + rng.IntN(4)))
		}
		return out
	}
	for range 3000 {
		a, b := text(), text()
		pairs := Align(a, b)
		last := [2]int{-1, -1}
		for _, p := range pairs {
			if a[p[0]] != b[p[1]] || p[0] <= last[0] || p[1] <= last[1] {
				t.Fatalf("%q and %q: %v", a, b, pairs)
			}
			last = p
		}
		if want := longest(a, b); len(pairs) != want {
			t.Fatalf("%q and %q: %d pairs, want %d", a, b, len(pairs), want)
		}
	}
}

// TestAlignIsBounded aligns texts that have almost nothing in common.
func TestAlignIsBounded(t *testing.T) {
	a := strings.Split(strings.Repeat("a\n", 20_000), "\n")
	b := strings.Split("start\n"+strings.Repeat("b\n", 20_000), "\n")
	if pairs := Align(a, b); len(pairs) != 1 { // the end
		t.Errorf("%d pairs", len(pairs))
	}
}
