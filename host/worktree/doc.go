// Package worktree keeps the working trees in which agents change the repository of a
// ticket: one for each claim, off the current base, on a branch of its own.
//
// A worktree is a clone that borrows the objects of its repository and has references,
// an index, settings and hooks of its own, so that nothing that is executed in it changes
// those of the user. Its git directory is beside its files and not among them. What is
// committed is published to the repository as one branch, with the value that the branch
// must have had. A worktree for a review has the commit that was verified, and publishes
// nothing.
//
// # Steps
//
// [Service.Add], [Service.Review], [Service.Commit], [Service.Rebase], [Service.Diff],
// [Service.Push] and [Service.Remove] can be repeated after a crash at any point: a step
// finds what it did before.
//
// # Concurrency
//
// A Service is safe for concurrent use. Steps of one ticket execute one after the other.
// Two services must not share a folder.
package worktree
