// Package memory implements the commands with which sentinels remember texts across
// runs: memory/store and memory/recall.
//
// Memories are documents of the collection "memory" in the call's Records, each of one
// sentinel. A write is therefore committed with the call's result. The commands data/*
// read, change and delete them like other documents.
package memory
