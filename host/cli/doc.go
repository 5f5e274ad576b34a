// Package cli implements the command line: one file a verb.
//
// [Main] is the program. Data goes to standard output, messages to standard
// error; [ExitCode] says what an exit code means. A verb that finds the store
// held asks the process that has it, through package owner.
//
// # Printing
//
// Verbs print through type printer alone, which takes [termtext.Text]. A value
// that this program did not write has to be escaped first, by escaped, clip or
// block, or as an argument of printf; the compiler rejects a plain string.
// Section S10 of host/SERVE.md has the rules.
package cli
