// Package store is the durable storage of the engine: the journals of runs,
// key-value pairs in named buckets, and blobs addressed by their digest.
//
// [Open] opens the store of a state folder. [NewMemory] returns a store that
// lives in memory. Package storetest states what both must do.
//
// # Concurrency
//
// All methods are safe for concurrent use. Batches take effect in the order in
// which [Store.Enqueue] returned, and each one entirely or not at all. A batch
// is never committed before one that was enqueued earlier. So after a crash the
// journal of every run is a prefix of what was enqueued for it.
//
// One goroutine writes. It commits all queued batches in one transaction and
// does not wait for more to arrive; only a Lazy batch is delayed while no other
// batch is queued. Readers see committed state only and never wait for the
// writer. Callbacks of readers run outside any transaction, so they may call
// the store.
package store
