// Package killtest tests that the host process may be killed at any moment. The tests
// kill real hosts with SIGKILL and check what is left against the guarantees of the
// engine:
//
//	a step runs at least once and is observed complete exactly once;
//	a host call whose result was recorded is never made again;
//	a non-idempotent call in doubt is never repeated without a decision.
//
// The test program runs itself as the host. Each such process is a life. What it did is
// judged from outside: by lines that the started programs append to a file, by the
// requests that a model server got, and by the journal in a copy of the state
// folder, taken between two lives. Every program, model request and line names
// the life it belongs to, so a late effect of an orphan is not attributed to
// the next life.
//
// SENTINEL_KILLS is the number of kills of the long test; make kill sets it.
package crashtest
