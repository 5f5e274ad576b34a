// Package control implements the control socket: a Unix socket in the state
// folder, through which other processes of the same user send commands to the
// owner, which is the process that has the store open.
//
// The owner calls [Listen]. A process that finds the store locked calls [Owner], and
// then the API through [Transport], as package client does. The protocol is HTTP over a
// Unix socket of mode 0600:
//
//	GET /v1/owner   describes the owner: [Info]
//
// Every other path is the owner's API. Errors are RFC 9457 problems, as in package
// httpproblem.
//
// Every process of the user can connect, also a confined one that may read no file of
// the user. So the owner requires the token of the state folder, as its API does
// everywhere, and [Transport] reads it there and adds it to each request.
package control
