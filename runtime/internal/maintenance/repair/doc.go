// Package repair rebuilds the store of a state folder that no process has open.
//
// The rules:
//
//   - What can be read of the damaged store counts. What is lost comes from the
//     newest sound snapshot, as it was when the snapshot was taken.
//   - A run's journal is entirely of one of the two, the one that reaches further,
//     from its first record on without a hole.
//   - A run that has not ended and may have lost records is paused: it would
//     repeat what these records say it has done. A person decides to resume it.
//   - A snapshot of another store that was in the folder is used only if
//     [Options.From] names it, or if the store's identity is unknown.
//   - The result is read whole before it replaces the damaged file, which is kept
//     beside it.
//
// # How
//
// [Run] holds the lock of the store from the inspection to the replacement.
// Package store rebuilds the file page by page and calls choose for each journal.
// Then mend opens the result and writes what follows from the records: history.Extent
// folds each journal, and the summaries of runs are made to agree with it.
//
// A repair knows of the engine's tables what [Layout] says, and of a run's summary
// the fields of summary; it keeps all other fields as they are.
package repair
