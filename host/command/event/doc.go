// Package event is the part of the HOST process that lets commands speak to
// triggers: events/emit puts an event into the runtime's log, events/tail
// reads the newest ones.
//
// The emit step does the same within the engine. events/emit is for people,
// for models and for programs outside of a run.
package event
