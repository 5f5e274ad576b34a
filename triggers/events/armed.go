package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// armed is one event trigger. Only the goroutine of Run uses it.
type armed struct {
	pattern  string
	source   sentinels.EventSource
	events   triggers.Events
	position uint64 // of the newest event that has fired
}

// Run fires every event that matches, in the order of the event log, until ctx
// ends. If a firing is not decided, Run returns the error; called again, it
// continues with the same event.
func (a *armed) Run(ctx context.Context, fire triggers.FireFunc) error {
	if a.events == nil {
		return errors.New("run event trigger: the host has no event log")
	}
	for {
		e, position, lost, err := a.events.Next(ctx, a.pattern, a.source, a.position)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read event log: %w", err)
		}
		saved, err := json.Marshal(state{position})
		if err != nil {
			return err
		}
		// Lost events are counted once: until the firing is decided the position
		// stays, and Next counts the same events again.
		_, err = fire(ctx, triggers.Firing{Key: key(e.Source, e.ID), At: e.Time, Event: &e, State: saved, Missed: lost})
		if ctx.Err() != nil && err != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("fire event %q: %w", e.Name, err)
		}
		a.position = position
	}
}

// key returns the idempotency key of an event. Ids are unique only within their
// source. The length prefix makes the concatenation unambiguous.
func key(source, id string) string { return fmt.Sprintf("%d:%s%s", len(source), source, id) }

var _ triggers.Armed = (*armed)(nil)
