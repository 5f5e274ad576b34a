// Package maintenance describes the maintenance of an engine and its state folder
// to those who operate it: whether the engine can write ([Health]), which runs are
// kept ([Retention], [Pruned]), the copies of the store ([Snapshot]), and what is
// found in or done to a state folder ([StateInfo], [Compacted], [RepairReport]).
//
// It has no behaviour; package runtime has the functions. The JSON forms are those
// of the API and of the CLI's output.
package maintenance
