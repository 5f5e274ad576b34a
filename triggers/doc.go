// Package triggers is WHEN: what starts a sentinel. Each kind has a folder of
// its own; this package holds what they share.
package triggers
