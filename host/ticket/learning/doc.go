// Package learning keeps what attempts at tickets teach, offers it to later attempts, and
// measures whether it helps.
//
// # Rules
//
// A [Rule] is a sentence for the prompts of workers. A person's rule is active at once.
// What a step or a model proposes is only proposed, and so is what a [Learner] finds by
// itself: a failure that two tickets had, and the way in which a ticket was done after a
// failure, which is of kind pattern. A person or a measured effect makes a proposal active.
// The text of a rule never changes, so that what was accepted is what prompts have.
//
// # Offers
//
// [Learner.Context] writes the prompt of an attempt: the ticket, the feedback of earlier
// attempts, and at most 5 rules and 2 patterns. Every text of a ticket, a program or a model
// is in it as data, see prompt.go. For the holder of a claim the offer is kept at the ticket
// until the result is known.
//
// # Effects
//
// While trials are allowed, rules that no person decided about are offered at random, and
// the shares of attempts that succeed with and without each are compared, see effect.go. A
// difference makes a proposal active, or retires a rule.
//
// # Concurrency
//
// A Learner is safe for concurrent use. Its methods execute in the transaction of their
// caller, and transactions execute one after the other.
package learning
