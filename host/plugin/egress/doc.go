// Package fetch makes the outgoing HTTP requests of step plugins: it is what
// the host answers sentinel_http with (clause A6.13 of sdk/ABI.md).
//
// A plugin is code of somebody else inside the operator's network, so a request
// has to pass two independent checks, and every redirect passes both again:
//
//   - The name. The host and port of the URL must be in the plugin's grant:
//     "api.example.com", "*.example.com" (names below it, not itself), or either
//     with a port. Without one the default ports of http and https are meant.
//   - The address. What is connected to must be a public address. That is
//     decided on the address the socket is about to use, not on an earlier
//     lookup, so a name that changes its answer between two lookups gains
//     nothing. [Call.Private] opens private networks to one plugin's hosts,
//     [Options.AllowPrivate] is the exception of whoever runs the program.
//
// # What a guest cannot have
//
// There is no proxy from the environment, no cookie jar, no connection that two
// requests share, no HTTP/2 and no TLS below 1.2. A connection serves one
// request: what one plugin made a server do is not waiting in a pool for the
// next, and nothing is left running when Do returns an answer. The price is
// a handshake a request.
//
// # Redirects
//
// At most five are followed. Where scheme, host or port change, only headers
// known to hold no credentials go along (a key may be in a header of any name),
// and they do not come back when a later hop returns. From https to http is
// refused. A POST becomes a GET at 301, 302 and 303, everything else but HEAD
// at 303; 307 and 308 repeat method and body.
//
// # Answers
//
// A status is a result, whatever it is. A body that is not UTF-8 comes as
// base64 with "encoding": "base64". A body that is longer than the answer may
// be is cut and "truncated" says so. Headers of the same name are joined by
// ", ", those of Set-Cookie by line breaks.
//
// # Errors
//
// They say no more of the network than the plugin said itself: no resolved
// address, no name server, no name from a certificate. Codes: bad_fields,
// denied, unavailable (the network, or a server that does not speak HTTP),
// timeout, limit, cancelled.
//
// # Secrets
//
// A guest writes {{secret.NAME}} where a secret is to be, and never has its
// value: in the path and the query of the URL, in the value of a header, and in
// the body if the request says "bodySecrets": true. What goes out is escaped for
// its place. Each secret has the hosts that may be sent it, by https unless an
// entry begins with http://; whatever is not granted is denied before there is a
// connection. No secret follows a redirect to another scheme, host or port, by
// the hand of the client or of the server. RATIONALE.md has the reasons.
//
// Every answer and every error is searched for the secrets that are known, in
// the forms in which servers repeat what they were sent, and *** is put there. A
// host that was granted a secret can still tell it in a form of its own: the
// grant says that it is trusted with it.
package egress
