// Package retry decides whether and when a failed step is retried.
//
// [ClassifyError] classifies an error, and [Decide] decides by the strategy of
// its category.
//
// # Classification
//
// The error's code decides first. Where the code leaves the category open, the
// message decides, most specific pattern first: a name such as ETIMEDOUT, the text
// of an exception, an HTTP status, phrases, single words. A number is an HTTP
// status only if the text around it says so. A code can make an error permanent,
// so that it is never retried. A message cannot, because text is no proof.
//
// # Strategies
//
// A [Profile] gives each category a number of retries and a backoff. A policy of the
// step replaces parts of it. Steps have a profile of their own, in which an error of
// unknown category has up to three attempts. Delays are exact, without jitter.
//
// # Concurrency
//
// Everything is a pure function or an immutable value.
package retry
