// Package budget limits what a tree of runs spends on models.
//
// A call passes through three states: reserved with its worst case, so that calls made
// at the same time cannot exceed a budget together; settled with what it has cost; or in
// doubt after a crash, when its worst case is charged and it may be reserved again.
//
// The accounts are a projection: the engine rebuilds them at recovery from the usage in
// the summaries of the runs, without their journals.
package budget
