// Package http implements the command http/request, which a step of type http calls.
//
// # Addresses
//
// A request goes through package egress: to public addresses, and to private ones of the hosts
// that the operator lists, at each redirect again.
//
// # Secrets
//
// A header, a token and a password may be {"secret": NAME} where the calling step names the
// secret itself. Such a request goes only to the scheme and host that the step writes out, and
// without TLS only to a listed host: a value of a variable, which may come from a model, never
// decides where a secret is sent.
//
// # Repetition
//
// GET, HEAD and OPTIONS only read. PUT and DELETE have the same effect if they are made twice,
// and so has any request with an idempotency key that the server knows. All others are in doubt
// after a crash. The command repeats nothing itself: a step with onError does.
package http
