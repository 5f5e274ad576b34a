// Package killtest proves that the HOST process may die at any moment: its
// tests kill a real one with SIGKILL again and again and hold what is left to
// the engine's promise.
//
//	a step runs at least once and is observed complete exactly once;
//	a host call whose result was recorded is never made again;
//	a non-idempotent call in doubt is never repeated without a decision.
//
// The test program runs itself as the host. What a life of it did is judged
// from outside: by lines that the started programs append to a file, by the
// requests that a model server got, and by the journal in a copy of the state
// folder, taken between two lives. Every program, model request and line names
// the life it belongs to, so what an orphan does late is not mistaken for
// something the next life did.
//
// SENTINEL_KILLS sets how often the long test kills; make kill does.
package killtest
