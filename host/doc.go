// Package host connects the engine to commands, shells, models and context, and
// owns the state folder.
//
// [Open] returns a [Host]. Package host/cli is its command line.
package host
