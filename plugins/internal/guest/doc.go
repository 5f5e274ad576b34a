// Package guest builds the module of the built-in STEPS and says whether the
// one at hand is of these sources.
package guest
