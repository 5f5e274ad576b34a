// Package plugins is the STEPS: it holds the built-in step types, one folder
// each, and embeds the guest that provides them all.
//
// The folders are plain Go on package sdk, the same SDK and ABI that every
// author has. builtin is their main package; internal/build compiles it for
// wasip1 and writes the files that this package embeds, so that go install
// works with Go alone. builtin.sum notes which sources and which Go version
// made the module; a test compares.
package plugins
