// Package store is the MEMORY of the engine: the journals of runs, records in
// named buckets, and blobs by digest, durable before anyone is told.
//
// [Open] opens the one of a state folder, [NewMemory] makes one that lives in
// memory; package storetest says what both must do.
//
// # Concurrency
//
// All methods are safe for concurrent use. Batches take effect in the order in
// which [Store.Enqueue] returned, each wholly or not at all, and a batch is
// never committed before one that was enqueued earlier. So after a crash the
// journal of every run is a prefix of what was enqueued for it.
//
// One goroutine writes. It commits all that waits in one transaction and never
// delays to gather more; only a Lazy batch with no company is held back.
// Readers see committed state only and never wait for the writer. Callbacks of
// readers run outside any transaction, so they may call the store.
package store
