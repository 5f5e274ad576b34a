// Package statefolder opens, checks and inspects the state folder of an engine.
//
// # Check
//
// [Check] reads a whole store that no process has open. It reads the file itself,
// without the database library, so that no content of the file can end the process.
// [Open] reads it in the same way before the library does.
//
// # Errors
//
// [Error] gives the errors of package store the form that operators and clients
// see: an [abi.Error] with a code and a hint, or an error that matches [ErrHeld].
//
// # Free space
//
// [LowWater] is the number of free bytes below which an engine is read-only. It is
// here and not in package health because [Inspect] reports it for a folder that
// no engine has open.
package statefolder
