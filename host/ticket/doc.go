// Package ticket keeps the tickets of a workspace: pieces of work that agents claim,
// finish, and try again with the feedback of earlier attempts.
//
// Tickets are documents of a host. A [Service] changes them in transactions of the
// caller, a [Tx], so that a change, its activity and its event are one commit, together
// with the result of the command that asked for it.
//
// # States
//
// A ticket has one [State]; [Moves] lists the moves, and every other one is the error
// conflict. The queues that agents claim from are ready (workers), in_review
// (reviewers) and approved (deployers).
//
// # Gates
//
// Work that is finished passes the gates that are on, in this order: the review, the
// approval of a person, the deployment. [Service.Complete] sends it to the next one.
//
// # Claims
//
// A claim is a lease: it has a holder, a time at which it expires unless a heartbeat
// renews it, and a token. The token grows with each claim of a ticket, and an agent that
// reports a result gives it: the report of an agent that lost its lease is the error
// conflict. An expired lease is a retry of category runtime.
//
// # Retries
//
// [Service.RetryOrFail] is the only place that decides whether failed work is tried
// again. It counts retries by cause, so that errors of a network do not use up the
// retries of a reviewer. A ticket that waits for its retry is in every list, with the
// seconds that are left, and only a claim passes over it. An index by time wakes it.
//
// # Concurrency
//
// A Service is safe for concurrent use. Its transactions execute one after the other,
// as those of [runtime.Documents] do.
package ticket
