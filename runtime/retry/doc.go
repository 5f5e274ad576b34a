// Package retry decides whether a step, a ticket or a plan that went wrong is
// tried again, and when.
//
// An error is classified ([ClassifyError], [ClassifyMessage]), a [Profile]
// gives the [Strategy] of its category, and [Decide] says what happens. There
// is one decision function and all callers use it.
//
// # Classification
//
// The error's code decides first, its message where the code leaves it open,
// most specific first: a name such as ETIMEDOUT, then an exception's text, then
// an HTTP status, then phrases, then single words. A number counts as an HTTP
// status only where the text around it says so. A code can make an error
// permanent, and then nothing retries it; a message cannot, because words are
// no proof.
//
// # Profiles
//
// [Fine] is the table of specification 000 and the default, [Coarse] the
// criteria of specification 001, [Step] is Fine with three tries for an error
// of unknown kind, for steps whose author asked for retries. Delays are exact
// to the millisecond unless the caller passes jitter.
//
// # Concurrency
//
// Everything is a pure function or an immutable value.
package retry
