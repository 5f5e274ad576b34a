// Package app is what the verbs of the command line share: the environment and flags of
// an invocation, its session with the engine, messages and exit codes, and the
// arguments that name files, definitions and runs.
package app
