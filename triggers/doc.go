// Package triggers is WHEN: what starts a sentinel. A [Kind] decides that
// something fires; the runtime decides whether a run starts.
//
// Each kind has a folder of its own; this package holds what they share, and
// standard links the usual [Set].
package triggers
