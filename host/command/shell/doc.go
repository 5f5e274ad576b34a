// Package shell runs programs for sentinels: it starts shell executions, applies
// the rules for them, stores their output and ends their process trees.
//
// A [Manager] starts each program in a session of its own, drains its output
// into capped files (see chunk.go for their format), and ends the whole process tree
// when the execution, its call or its run ends. A record per execution survives
// a crash of the host, so that [Manager.Recover] finds what was interrupted.
//
// # Guarantees
//
// Linux: a supervisor process owns the tree of each execution (package supervise),
// as root and as any user, in containers too. Every descendant ends with the
// execution, also if it left the session, cleared its environment and outlived its
// parent; and every tree ends when the host is killed, without waiting for another
// host. Not held are processes that run as another user through a setuid program,
// and the tree of a command that kills its supervisor: with [Options.Subreaper] that
// is found and ended, too, unless the host is killed at the same time. What may be
// left is logged, and written into the output of the execution.
//
// Other Unix systems: the process group alone, and nothing is found after a crash.
// Windows: the started process alone. [New] logs what is missing.
//
// # Concurrency
//
// A Manager is safe for concurrent use. Each live execution owns four goroutines
// (two readers, one that listens to the supervisor, one that follows the command) and
// one more while it is written its input; they have ended when its end is announced.
// A watch never blocks the program it watches.
package shell
