// Package cli implements the command line: [Main] is the program, and [Run] executes
// one invocation of it.
//
// The verbs are in packages by their subject:
//
//	definitions   create, validate, edit and compare definitions
//	run           execute runs, follow and control them
//	inspect       list and show sentinels, runs, triggers and events
//	plugins       permissions, packages and the development of step plugins
//	operations    the server, configuration, repair, and the program itself
//
// A verb parses its arguments, calls the engine through an app.Session, and prints.
// Package app has what they share, package output the text forms. Data goes to standard
// output, messages to standard error; app.ExitCode documents the exit codes.
package cli
