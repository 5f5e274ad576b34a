// Package triggers declares what a trigger kind implements. A [Kind] reports
// firings; the runtime admits them, which decides whether a run starts.
//
// Each kind has a package of its own below this one. Package standard returns
// the usual [Set].
package triggers
