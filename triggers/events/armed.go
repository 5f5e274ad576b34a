package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sentinel-runtime/sentinel/triggers"
)

// armed is one event trigger. Only the goroutine of Run uses it.
type armed struct {
	pattern  string
	log      triggers.Events
	position uint64 // what is behind it is yet to be fired
}

// Run fires every event that fits, in the order of the log, until ctx ends. A
// fire that was not decided ends it with the error; run again it goes on with
// that same event.
func (a *armed) Run(ctx context.Context, fire triggers.Func) error {
	if a.log == nil {
		return errors.New("run event trigger: the host has no log of events")
	}
	for {
		e, position, lost, err := a.log.Next(ctx, a.pattern, a.position)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read log of events: %w", err)
		}
		kept, err := json.Marshal(state{position})
		if err != nil {
			return err
		}
		// What is lost is counted once: until the fire is decided the position
		// stays, and Next counts the same again.
		_, err = fire(ctx, triggers.Fire{Key: key(e.Source, e.ID), At: e.Time, Event: &e, State: kept, Missed: lost})
		if ctx.Err() != nil && err != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("fire event %q: %w", e.Name, err)
		}
		a.position = position
	}
}

// key names an event. Ids are unique only within their source; the length keeps
// the two apart.
func key(source, id string) string { return fmt.Sprintf("%d:%s%s", len(source), source, id) }

var _ triggers.Armed = (*armed)(nil)
