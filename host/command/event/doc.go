// Package event implements the commands on the event log: events/emit publishes an
// event, events/tail reads the newest ones.
//
// The emit step publishes events within the engine. events/emit is for users,
// models and programs outside of a run.
package event
