// Package ticket implements the commands ticket/*: pieces of work that agents claim and
// finish. What they do is in host/ticket; here are their parameters and answers.
//
// Each is one transaction of the call's Records, committed with the call's result: a
// claim that a step made is the step's also after a crash.
package ticket
