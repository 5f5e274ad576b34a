// Package crashtest tests the recovery of a host process that was killed. The tests
// kill real hosts with SIGKILL at random moments and check the state and the
// effects against the guarantees of the engine:
//
//	a step runs at least once and is observed complete exactly once;
//	a host call whose result was recorded is never repeated;
//	a non-idempotent call in doubt is never repeated without a decision.
//
// The test program runs itself as the host. Each such process is called a life. Its
// effects are checked from outside: by lines that the started programs append to a
// file, by the requests that a model server received, and by the journal in a copy
// of the state folder, made between two lives. Every program, model request and
// line names its life, so a late effect of an orphan is not attributed to the next
// life.
//
// SENTINEL_KILLS is the number of kills of the long test; make kill sets it.
package crashtest
