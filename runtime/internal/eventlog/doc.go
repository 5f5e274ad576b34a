// Package eventlog is the durable event log of an engine: one sequence of events that
// runs, triggers and clients emit and follow.
//
// [Log.Emit] appends an event of its own commit; [Log.Append] and [Log.AppendAll] add
// events to a commit of the caller, so that they become durable together with what
// they report. Each event has an offset, counted from 1. The log keeps
// events up to a number and to a size in bytes; beyond that the emitter with the most loses
// its oldest one. An event with the source and the ID of one that is kept is not appended
// again.
//
// A reader has a cursor, which is the offset of the last event that it has seen, and
// calls [Log.Wait] for the next one that matches a pattern. The log keeps no state of
// readers: cursors are in the journals of runs and in the records of triggers, so a
// reader misses nothing between two waits or over a crash, and learns how many events
// had left the log before it read them. While it waits it has a subscription, which is
// in memory only.
//
// An event carries the [Chain] of runs that it has passed through, whose length is
// limited so that sentinels that trigger each other in a circle end. An
// [Emission] counts the bytes of events that one host call of a run emits.
package eventlog
