// Package retry decides whether and when a failed step is retried.
//
// [ClassifyError] and [ClassifyMessage] classify an error, a [Profile] has the
// [Strategy] of its category, and [Decide] makes the decision.
//
// # Classification
//
// The error's code decides first. Where the code leaves the category open, the
// message decides, most specific pattern first: a name such as ETIMEDOUT, the text
// of an exception, an HTTP status, phrases, single words. A number is an HTTP
// status only if the text around it says so. A code can make an error permanent,
// so that it is never retried. A message cannot, because text is no proof.
//
// # Profiles
//
// [Step] is the profile for steps with a retry policy: [Fine], with up to three
// attempts for an error of unknown category. [Fine] has one class for each
// category, [Coarse] has five classes. Delays are exact unless the caller passes
// jitter.
//
// # Concurrency
//
// Everything is a pure function or an immutable value.
package retry
