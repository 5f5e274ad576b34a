// Package run describes runs to the code that lists, observes and answers them: the
// summary of a run ([Info]) and its selection ([Filter]), its result ([Result]), totals
// of a sentinel ([Totals]), and the decisions that it waits for ([PendingDecision],
// answered by a [Decision]).
//
// It has no behaviour; package runtime executes runs.
package run
