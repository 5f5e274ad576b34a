package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// armed is one event trigger. Only the goroutine of Run uses positions.
type armed struct {
	patterns  []string // of each log
	source    sentinels.EventSource
	events    triggers.Events
	positions []uint64 // of the newest event of each log that has fired
}

// found is the next event of a log.
type found struct {
	log      int
	event    sentinels.Event
	position uint64
	lost     int
	err      error
}

// Run fires every event that matches, in the order of its log, until ctx
// ends. If a firing is not decided, Run returns the error; called again, it
// continues with the same event.
func (a *armed) Run(ctx context.Context, fire triggers.FireFunc) error {
	if a.events == nil {
		return errors.New("run event trigger: the host has no event log")
	}
	next := func() found { return a.next(ctx, 0, a.positions[0]) }
	if len(a.patterns) > 1 {
		var end func()
		next, end = a.merge(ctx)
		defer end()
	}
	for {
		f := next()
		if ctx.Err() != nil {
			return nil
		}
		if f.err != nil {
			return fmt.Errorf("read event log: %w", f.err)
		}
		positions := slices.Clone(a.positions)
		positions[f.log] = f.position
		saved, err := json.Marshal(stateOf(positions))
		if err != nil {
			return err
		}
		// Lost events are counted once: until the firing is decided the position
		// stays, and Next counts the same events again.
		_, err = fire(ctx, triggers.Firing{Key: key(f.event.Source, f.event.ID), At: f.event.Time, Event: &f.event, State: saved, Missed: f.lost})
		if ctx.Err() != nil && err != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("fire event %q: %w", f.event.Name, err)
		}
		a.positions = positions
	}
}

// next waits for the next event of a log behind a position.
func (a *armed) next(ctx context.Context, log int, after uint64) found {
	f := found{log: log}
	f.event, f.position, f.lost, f.err = a.events.Next(ctx, a.patterns[log], a.source, after)
	return f
}

// merge reads the logs side by side. next returns the next event of any of them; end ends the reading and waits for it.
// Each log is read ahead by one event at most, whose position counts only once it has fired.
func (a *armed) merge(ctx context.Context) (next func() found, end func()) {
	ctx, cancel := context.WithCancel(ctx)
	events := make(chan found)
	var readers sync.WaitGroup
	for log, position := range a.positions {
		readers.Go(func() {
			for {
				f := a.next(ctx, log, position)
				select {
				case events <- f:
				case <-ctx.Done():
					return
				}
				if f.err != nil {
					return // Run ends with it
				}
				position = f.position
			}
		})
	}
	next = func() found {
		select {
		case f := <-events:
			return f
		case <-ctx.Done():
			return found{err: ctx.Err()}
		}
	}
	return next, func() { cancel(); readers.Wait() }
}

// key returns the idempotency key of an event. Ids are unique only within their
// source. The length prefix makes the concatenation unambiguous.
func key(source, id string) string { return fmt.Sprintf("%d:%s%s", len(source), source, id) }

var _ triggers.Armed = (*armed)(nil)
