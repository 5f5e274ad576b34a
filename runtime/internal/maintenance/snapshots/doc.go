// Package snapshots takes store snapshots: copies of the store of a state folder,
// in its folder snapshots.
//
// A [Keeper] takes one whenever the store has changed and the newest snapshot is
// older than an interval, whichever process took it, and one on request before
// something that cannot be undone. The newest of each reason are kept. A
// repair takes what is lost from the newest sound one.
package snapshots
