// Package problem is how the host PROCESS tells an error to another program: as
// an RFC 9457 problem with our own members code, hint and field.
//
// It is the one place that maps the codes of package abi to HTTP statuses. The
// API and the owner's socket write problems with [Write]; their clients make
// the error again with [Read].
package httpproblem
