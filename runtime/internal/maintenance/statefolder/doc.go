// Package statefolder opens, checks and inspects the state folder of an engine.
//
// # Check
//
// [Check] reads a whole store that no process has open. It reads the file itself
// first, which no content can make dangerous. Then the database library reads it
// in a child process ([ServeChild]), because damage can end the process that the
// library runs in. [Open] makes the second check too after an unclean shutdown.
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
