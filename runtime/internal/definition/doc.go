// Package definition stores definitions with their revisions, and notifies those who
// follow them.
//
// [Store.Save] and [Store.Edit] make a new revision of a definition, [Store.Delete]
// makes a tombstone, [Store.Rollback] saves an old revision again and [Store.Import]
// adds definitions of another store with their histories. Each is one commit on the
// condition that the newest revision, the head, is still the one that the caller
// expects; otherwise it is the error conflict. The store keeps the newest revisions of
// each definition.
//
// Followers get each new revision when it is durable, in the order of the commits:
// runs that wait between iterations use it next, triggers are armed with it.
//
// Two caches serve reads: the list of all heads, which is valid until the next write,
// and decoded definitions by their text and the step types that they were decoded with.
// Nothing is cached of a definition that is being written.
package definition
