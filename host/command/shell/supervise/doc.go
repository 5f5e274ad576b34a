// Package supervise is the process that owns the process tree of a shell execution.
//
// A program can leave its process group and session, clear its environment and
// outlive its parent, and then nothing that can be read from outside shows who
// started it. It cannot choose who adopts it: on Linux the nearest ancestor that is
// a child subreaper. So each execution has such an ancestor, a supervisor, which is
// this very program started once more. It starts the command, adopts whatever the
// command leaves behind, and has no other children: while it has one, the execution
// has processes, and when it has none, all have ended. Then it may serve another
// execution.
//
// The supervisor ends the tree when the command has ended, when the host orders it,
// and when the host has ended, which it sees by the end of their connection.
//
// # How it starts
//
// A program that links this package is a supervisor if its environment holds
// [Marker]. That is looked at while packages are initialised, for two reasons. The
// packages of a host take many times longer to initialise than a supervisor needs
// to start; this one imports little, so it comes early. And an embedder's main need
// not know of it.
//
// # What marks a tree
//
// A command may kill its supervisor and the host. What it leaves behind has a mark all the
// same, see [Marked].
//
// # Limits
//
// A command with the same user may kill its supervisor. The command then gets
// SIGKILL too; what else it has started goes to the host, if that is a subreaper or
// process 1, else to process 1. The host notices in any case. Processes of another
// user, started by a setuid program, may refuse to be killed and are reported.
package supervise
