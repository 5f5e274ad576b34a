// Package plugins contains the built-in step types, one folder each, and embeds
// the Wasm module that implements them all.
//
// The step types are written in Go on package sdk, like the plugins of other
// authors. builtin is their main package. Command internal/build compiles it for
// wasip1 and writes the files that this package embeds, so that go install needs
// only Go. builtin.sum records the digests of the module and its sources and the Go version,
// and builtin.json the manifest that the module describes itself with. Tests compare both.
package plugins
