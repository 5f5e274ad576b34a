// Package git implements the commands on the Git repository of a workspace: code/git
// and code/diff.
//
// It runs the git of the machine, found once on the absolute part of PATH, and
// takes every repository for hostile: no hook, filter, helper, pager or other
// program that a repository names is ever run. What of the repository's
// configuration can be overridden is; what cannot makes the call fail with the
// name of the key. The person's own configuration (identity, credentials, ssh)
// counts.
//
// A refused push or a pull that is no fast-forward is a result with success
// false. A commit with nothing to commit is a result with success true and
// committed false, so that a loop which commits after each pass goes on.
package git
