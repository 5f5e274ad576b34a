// Package shell is the part of the HOST process that runs programs for
// sentinels: shell executions, their output, their rules and their end.
//
// A [Manager] starts each program in a session of its own, drains its output
// into a capped spill file with line numbers, and ends the whole process tree
// when the execution, its call or its run ends. A record per execution survives
// a crash of the host, so that [Manager.Recover] finds and ends what lived on.
//
// # Guarantees
//
// Linux: a tree is found by process group, session, parentage and a cookie in
// the environment, so daemons that call setsid are ended too; a program that
// leaves the session, scrubs its environment and outlives its parent is not
// found. Other Unix systems: the process group alone, and nothing is found
// after a crash. Windows: the started process alone. [New] logs what is missing.
//
// # Concurrency
//
// A Manager is safe for concurrent use. Each live execution owns four
// goroutines (two readers, one waiter, one that supervises); they have ended
// when its end is announced. A watch never blocks the program it watches.
package shell
