// Package egress implements the host call sentinel_http, by which step plugins make
// HTTP requests (clause A6.13 of sdk/ABI.md).
//
// A plugin is third-party code inside the operator's network, so a request has to
// pass two independent checks, and every redirect has to pass both again:
//
//   - The name. The host and port of the URL must be in the plugin's grant:
//     "api.example.com", "*.example.com" (names below it, not itself), or either
//     with a port. Without one the default ports of http and https are meant.
//   - The address. What is connected to must be a public address. That is
//     decided on the address the socket is about to use, not on an earlier
//     lookup, so a name that changes its answer between two lookups gains
//     nothing. [Call.Private] allows private networks for one plugin's hosts,
//     [Options.AllowPrivate] for all plugins.
//
// # Restrictions
//
// There is no proxy from the environment, no cookie jar, no connection reuse, no
// HTTP/2 and no TLS below 1.2. A connection serves one request, so no state of one
// plugin's connection reaches another plugin, and no goroutine is left when Do
// returns. The price is one handshake per request.
//
// # Redirects
//
// At most five are followed. When scheme, host or port change, only headers that
// are known to have no credentials are kept (a key may be in a header of any name),
// and dropped headers stay dropped if a later redirect leads back. A redirect from
// https to http is denied. A POST becomes a GET at 301, 302 and 303, every other
// method but HEAD at 303; 307 and 308 repeat method and body.
//
// # Responses
//
// Every HTTP status is a result, not an error. A body that is not UTF-8 is encoded
// with "encoding": "base64". A body longer than the limit is truncated and
// "truncated" is true. Headers of the same name are joined by ", ", those of
// Set-Cookie by line breaks.
//
// # Errors
//
// Errors contain only names that the plugin sent: no resolved address, no name
// server, no name from a certificate. Codes: bad_fields, denied, unavailable (the
// network, or a server that does not speak HTTP), timeout, limit, cancelled.
//
// # Secrets
//
// A guest writes the placeholder {{secret.NAME}} and never gets the value. It is
// replaced in the path and the query of the URL, in the value of a header, and in
// the body if the request has "bodySecrets": true. The value is escaped for its
// position. Each secret has a list of hosts that it may be sent to, by https unless
// an entry begins with http://; other hosts are denied before a connection is made.
// No secret is sent on a redirect to another scheme, host or port, whether the
// client or the server would add it. RATIONALE.md has the reasons.
//
// Known secrets are redacted from every response and every error, in the forms in
// which servers repeat a request, and replaced with ***. A host that was granted a
// secret can still return it in another encoding: the grant means that the operator
// trusts the host with it.
//
// # Requests of the host
//
// [Client.Fetch] makes requests for steps of definitions and for commands, which have no
// grant: they go to any host whose address is public, and to private addresses of the hosts
// that a setting names. Addresses of one link, and those that serve metadata of clouds, stay
// refused. Redirects, headers and limits are those of plugins' requests. Placeholders mean
// nothing there, because such a request has texts of users and models in every part.
package egress
