// Package retention removes what is kept of runs that have ended.
//
// [Pruner.Prune] removes whole runs: journals, results, summaries and start keys,
// in commits of a few runs each. It works in four steps:
//
//  1. read looks at the summary of every run and builds the trees of runs.
//  2. choose returns the roots of the trees to remove. A tree is removed whole, and
//     only if all its runs have ended. Below an active run, what ended before the
//     newest iteration of that run may be removed: its own replay may ask for the
//     rest.
//  3. remove deletes them. What a removed tree has cost is added to the run above
//     it, so the usage of a tree of runs does not shrink.
//  4. sweep deletes blobs that nothing names any more, also those that a crash left.
//
// [Iterations] decides which records of an active run are removed: those of its
// oldest iterations.
package retention
