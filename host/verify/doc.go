// Package verify checks whether work fulfils the acceptance criteria of a ticket.
//
// A [Verifier] clones the branch into a folder of its own, executes each check there,
// and says passing, failing or blocked. Passing means that every check was executed and
// passed. A check that could not be executed is skipped, and then the verification is
// blocked, with a reason: a fault of the infrastructure, which uses no attempt of the
// ticket and is retried, or something that a person has to decide.
//
// The types of checks are http_request, file_exists, code_pattern, test_pass and manual.
// Checks of files read only what is inside the checkout, also through symbolic links.
// Commands, which a stranger may have written, are executed by package confine.
package verify
