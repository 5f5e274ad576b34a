// Package pool keeps idle guest instances for the next call of their module.
//
// A [Pool] belongs to one module, and an [Idle] to the host, which has one limit for
// all pools: on the linear memory of idle instances together. Beyond it the oldest is
// closed. Each is closed a minute after its last use, and earlier when a call needs
// its memory ([Idle.Reclaim]). How many there are is not limited: small guests may
// be many, large ones few.
//
// Package wasm decides which instances are put into a pool and which calls may have
// one.
package pool
