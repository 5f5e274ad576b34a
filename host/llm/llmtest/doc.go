// Package llmtest is a stand-in for the servers of model providers, for tests.
//
// There is one server. What differs between providers is data: the table of package providers says
// what their errors and finish reasons mean and which members they want or refuse, and servers.json
// has what a test needs beyond that: the bodies of their errors, where the usage is, in which form the
// thinking comes, and which requests they refuse. Each server of it has the addresses of its sources.
//
// A [Server] is strict. It refuses a request that the real one refuses, and every message of the model
// that does not come back byte for byte as it was sent.
package llmtest
