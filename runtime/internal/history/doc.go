// Package history folds the records of a run's journal into the run's state.
//
// [State.Apply] is the only function that interprets records. It takes them one
// by one and reads nothing else: no blob, no clock, no randomness. The same
// records therefore give the same state wherever they are folded: in the live run
// that makes them, in recovery, in a fork, when the definition of a run is looked
// up, or in a test.
//
// # What the state holds
//
//   - for the whole run: its start, the newest iteration, its usage, the limit
//     extensions, the cursors in the event log, the definitions that it used;
//   - the variables ([Scope]), and those of each open parallel branch;
//   - for the open iteration: what a replay of it needs of its step executions
//     and their host calls ([Execution], [Attempt], [Call]), and the decisions of
//     people that no call has used yet. Apply drops what is never replayed: calls
//     before a checkpoint, attempts that have ended, steps in a block that has ended.
//
// A value that is too large for a record is a digest ([journal.Value]). The
// caller reads the blobs of the values that it needs, after the fold.
//
// # Journals with a hole
//
// Retention removes the records of old iterations: behind the first record a
// journal may begin with any record. The state is then incomplete
// ([State.Complete]) until the next iteration.end, which holds the whole state.
// A hole anywhere else is a [GapError], and a record that refers to something
// that is not there is a [RecordError]. Apply does not panic.
package history
