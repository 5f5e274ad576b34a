package events

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// Options configure the kind. There are no options; the zero value works.
type Options struct{}

// Kind is the trigger kind "event". It is stateless.
type Kind struct{}

// New returns the trigger kind.
func New(Options) Kind { return Kind{} }

// Describe describes the kind "event".
func (Kind) Describe() triggers.Description {
	return triggers.Description{Name: "event", Field: sentinels.TriggerEvent, Fires: "on events of the event log", Event: "the event itself: {name, id, source, time, data}; data of an event of a run, sentinel:ID:WORD: {run, sentinel, parent, status, reason, error, iterations, durationMs, usage}"}
}

// Check reports problems of the pattern and the options of t. An event trigger
// has only the common options.
func (Kind) Check(t sentinels.Trigger) error {
	problems := triggers.ReadOptions(t, &struct{}{})
	if !sentinels.ValidPattern(t.Event) {
		invalid := fmt.Errorf("trigger \"event\": invalid event pattern %q: want names separated by colons, where * is one name and a final ** the rest", t.Event)
		problems = errors.Join(invalid, problems)
	}
	return problems
}

// Arm prepares a trigger. It reads the event log from behind the newest event
// that it fired. A trigger that never fired reads from behind env.Position.
func (k Kind) Arm(t sentinels.Trigger, env triggers.Env) (triggers.Armed, error) {
	if err := k.Check(t); err != nil {
		return nil, err
	}
	position, err := readState(env.State, env.Position)
	if err != nil {
		return nil, err
	}
	return &armed{pattern: t.Event, events: env.Events, position: position}, nil
}

// state is what the trigger stores with each firing.
type state struct {
	Position uint64 `json:"position"` // of the newest event that fired
}

// readState returns the stored position, or initial without a state.
func readState(raw json.RawMessage, initial uint64) (uint64, error) {
	if len(raw) == 0 {
		return initial, nil
	}
	var s state
	if err := json.Unmarshal(raw, &s); err != nil {
		return 0, fmt.Errorf("read state of event trigger: %w", err)
	}
	return s.Position, nil
}

var _ triggers.Kind = Kind{}
