// Package run describes runs to the code that lists, observes and answers them: the
// summary of a run ([Info]) and its selection ([Filter]), how it ended ([Result]), what
// all runs of a sentinel come to ([Totals]), and what a person has to decide before a
// run continues ([PendingDecision], answered by a [Decision]).
//
// It has no behaviour; package runtime executes runs.
package run
