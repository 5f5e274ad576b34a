package sentinels

import "reflect"

// AlignSteps returns for each step of next the index of the same step in before, -1 for
// none: the one with its id, else with its name, else the same one, else the
// one in its place if neither has steps that the other lacks.
func AlignSteps(before, next []Step) []int {
	at := make([]int, len(next))
	taken := make([]bool, len(before))
	for i := range at {
		at[i] = -1
	}
	match := func(same func(a, b *Step) bool) {
		for i := range next {
			for j := 0; at[i] < 0 && j < len(before); j++ {
				if !taken[j] && same(&before[j], &next[i]) {
					at[i], taken[j] = j, true
				}
			}
		}
	}
	match(func(a, b *Step) bool { return b.ID != "" && a.ID == b.ID })
	match(func(a, b *Step) bool { return b.ID == "" && a.ID == "" && b.Name != "" && a.Name == b.Name })
	match(func(a, b *Step) bool { return reflect.DeepEqual(a, b) })
	if len(before) == len(next) {
		for i := range next {
			if at[i] < 0 && !taken[i] {
				at[i] = i
			}
		}
	}
	return at
}
