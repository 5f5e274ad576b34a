// Package linediff compares sequences of strings: [Align] finds what two of them have in
// common, [Unified] writes the differences of two texts as patch(1) reads them.
//
// Package sentinels uses Align for the items of lists too, by their canonical JSON; the
// commands on files show with Unified what a write would change. Both functions are pure
// and keep no state; their time is bounded for texts that have nothing in common.
package linediff
