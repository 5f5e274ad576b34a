package events

import (
	"encoding/json"
	"fmt"

	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// Options configure the kind. There are none yet; the zero value works.
type Options struct{}

// Kind is the trigger kind "event". It is stateless.
type Kind struct{}

// New makes the trigger kind.
func New(Options) Kind { return Kind{} }

// Name is "event".
func (Kind) Name() string { return "event" }

// Check reports what is wrong with the pattern and the options of t. An event
// trigger has no options but those of every kind.
func (Kind) Check(t sentinels.Trigger) error {
	if !sentinels.ValidPattern(t.Event) {
		return fmt.Errorf("trigger \"event\": event %q is no pattern; write names between colons, * for one, ** at the end for the rest", t.Event)
	}
	return triggers.ReadOptions(t, &struct{}{})
}

// Arm readies a trigger. It reads the log behind the newest event that it fired,
// or behind where the log stood when it was armed for the first time.
func (k Kind) Arm(t sentinels.Trigger, env triggers.Env) (triggers.Armed, error) {
	if err := k.Check(t); err != nil {
		return nil, err
	}
	position, err := readState(env.State, env.Position)
	if err != nil {
		return nil, err
	}
	return &armed{pattern: t.Event, log: env.Events, position: position}, nil
}

// state is what is kept over restarts.
type state struct {
	// Position of the newest event that fired, in the log.
	Position uint64 `json:"position"`
}

func readState(raw json.RawMessage, begin uint64) (uint64, error) {
	if len(raw) == 0 {
		return begin, nil
	}
	var s state
	if err := json.Unmarshal(raw, &s); err != nil {
		return 0, fmt.Errorf("read state of event trigger: %w", err)
	}
	return s.Position, nil
}

var _ triggers.Kind = Kind{}
