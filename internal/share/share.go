// Package share decides whose things are removed when a bound that several principals have in common
// is reached: those of the principal with the most, so that each removes only its own. Principals with a
// reserve, as persons have, lose none while they have less than half together.
package share

import (
	"maps"
	"slices"
)

// Most returns the owner that loses something next, of what each owner has; "" and false if there is
// none. reserved reports whether an owner is one of those who lose nothing while they have at most
// reserve together; nil means none is.
func Most(has map[string]int64, reserved func(owner string) bool, reserve int64) (owner string, ok bool) {
	var sum int64
	for owner, n := range has {
		if reserved != nil && reserved(owner) {
			sum += n
		}
	}
	for _, candidate := range slices.Sorted(maps.Keys(has)) {
		if reserved != nil && reserved(candidate) && sum <= reserve {
			continue
		}
		if !ok || has[candidate] > has[owner] {
			owner, ok = candidate, true
		}
	}
	return owner, ok
}

// An Item is one of the things that a bound counts.
type Item[T any] struct {
	Value T
	Owner string // "" is a person, who has a reserve
	Size  int64
	Stays bool // counts, and is not removed
}

// Beyond returns what has to be removed of a list, the oldest first, so that it is not larger than
// bound. Persons lose nothing while they have at most reserve.
func Beyond[T any](list []Item[T], bound, reserve int64) (gone []T) {
	total, has, free := int64(0), map[string]int64{}, map[string][]Item[T]{}
	for _, item := range list {
		total += item.Size
		has[item.Owner] += item.Size
		if !item.Stays {
			free[item.Owner] = append(free[item.Owner], item)
		}
	}
	for total > bound {
		owner, ok := Most(has, func(owner string) bool { return owner == "" }, reserve)
		if !ok {
			break
		}
		items := free[owner]
		if len(items) == 0 {
			delete(has, owner) // all that is left of it stays
			continue
		}
		gone = append(gone, items[0].Value)
		total -= items[0].Size
		has[owner] -= items[0].Size
		free[owner] = items[1:]
	}
	return gone
}
