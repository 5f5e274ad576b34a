// Package clock is what a guest sees of time and randomness (ABI clause A7).
//
// Both follow from the seed and the start time of an attempt, so that equal input and
// equal replies to host calls give equal requests, and a replay repeats them. A sleep
// takes no real time. The methods of [Clock] are those that the engine calls for
// WASI.
package clock
