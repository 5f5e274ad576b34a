// Package guest builds and stores the module of the built-in step types, with a
// digest of its sources.
package guest
