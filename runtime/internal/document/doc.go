// Package document keeps collections of JSON documents with revisions in the store of
// an engine. Commands read and write them in transactions.
//
// A [Store] executes one transaction that may write at a time; [Store.View] reads beside it. [Store.Update] commits the writes of a
// transaction by itself; [Store.Transact] hands them to the caller, which commits them
// together with the end of a host call, so that such a command happens exactly once.
// Events that a transaction emits are part of the same commit.
//
// A document is written on a revision: the one that the caller has read, 0 for a new
// document, or any. Another revision is the error conflict. A transaction sees its own
// writes, and those of earlier transactions even before they are durable; when a
// transaction fails, nothing of it is written.
package document
