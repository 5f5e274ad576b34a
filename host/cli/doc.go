// Package cli drives the host PROCESS from a terminal: one file a verb.
//
// [Main] is the program. Data goes to standard output, talk to standard error;
// what an exit code means is said once, in [ExitCode]. A verb that finds the
// store held asks the process that has it, through package owner.
package cli
