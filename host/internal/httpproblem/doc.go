// Package httpproblem encodes errors as HTTP responses with an RFC 9457 problem,
// with the extension members code, hint and field, and decodes them.
//
// Only this package maps the codes of package abi to HTTP statuses. The API and
// the control socket write problems with [Write]; their clients decode them with
// [Read].
package httpproblem
