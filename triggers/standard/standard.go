// Package standard links the usual trigger kinds: those that definitions may use
// on a host that adds none of its own.
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

// Set returns the usual kinds with default options, in the order of TRIGGERS.md.
// Each call returns new values, so that two hosts in one process share nothing.
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
