// Package clock measures and waits for the two times of a run.
//
// A [Calendar] is wall-clock time: waits, backoff and the interval between
// iterations are due at a time of day or after a duration, whether or not the host
// runs meanwhile.
//
// An [Active] clock is the time in which the host was up and the run was not paused:
// limits of runs and steps are measured with it.
//
// A [Gate] blocks the steps of a paused run.
package clock
