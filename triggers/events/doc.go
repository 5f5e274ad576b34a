// Package events is the trigger kind that fires on events of the host's log.
package events
