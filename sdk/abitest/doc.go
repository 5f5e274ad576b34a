// Package abitest is the conformance kit of the plugin ABI: it holds hosts and
// the guests of SDKs to the clauses of ABI.md.
package abitest
