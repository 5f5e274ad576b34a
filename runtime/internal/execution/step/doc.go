// Package step executes lists of steps: it resolves the fields of a step, runs its guest,
// answers the host calls of the guest, and tries a failed step again.
//
// A step belongs to a [Run], which has the journal, the state, the schedule and the budget
// that its steps share; package execution implements it. What the steps of all runs share
// is in [Services].
package step
