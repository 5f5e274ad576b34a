// Package manifest reads the manifest of a plugin, which its describe returns: its
// name, its step types and the permissions that it asks for (ABI clause A2).
//
// [Parse] reports all faults of a manifest at once. It compiles no schema; package
// wasm does that in a child process, with the step types of [Manifest.Types].
package manifest
