// Package rewrite changes a scanned module so that a host can interrupt it and bound
// its memory. Package wasm compiles the result.
//
//   - Each function body is put into a loop, whose head is an interruption point
//     (rewrite.go).
//   - Instructions that take long in native code get an interruption point, or become
//     calls of two added functions that work in chunks (bulk.go, bulk.wat). Package
//     binary finds them.
//   - Tables get a maximum, and imports the module that the caller names (rewrite.go).
//   - Data segments are merged, which makes instantiation faster (data.go).
//
// The effect of a valid module does not change. One that the compiler rejects is
// rejected after the rewrite too. A fuzz test checks both.
package rewrite
