// Package lesson is what the tests of the examples share: they run a lesson's
// files as a reader would, in a host of their own.
//
// [Workspace] makes the folder a lesson works in, by the same setup.sh that its
// script uses. [Run] runs a definition in it. [Serve] is a model whose
// answers a test has written; [Cassette] proves that what such a model says is
// what the lesson's cassette.jsonl holds, and writes that file again with
//
//	go test ./examples/... -update
package lesson
