// Package standard links the usual trigger kinds: all that definitions may name
// on a host which adds none of its own.
package standard

import (
	"github.com/sentinel-runtime/sentinel/triggers"
	"github.com/sentinel-runtime/sentinel/triggers/cron"
	"github.com/sentinel-runtime/sentinel/triggers/events"
	"github.com/sentinel-runtime/sentinel/triggers/files"
	"github.com/sentinel-runtime/sentinel/triggers/immediate"
	"github.com/sentinel-runtime/sentinel/triggers/manual"
	"github.com/sentinel-runtime/sentinel/triggers/webhook"
)

// Set returns the usual kinds with their defaults, in the order in which they
// are documented. Each call makes new ones, so that two hosts in one process
// share nothing.
func Set() triggers.Set {
	return triggers.Set{
		manual.New(manual.Options{}),
		immediate.New(immediate.Options{}),
		cron.New(cron.Options{}),
		events.New(events.Options{}),
		files.New(files.Options{}),
		webhook.New(webhook.Options{}),
	}
}
