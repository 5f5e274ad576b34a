// Package events implements the trigger kind that fires on events of the event log.
package events
