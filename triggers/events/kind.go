package events

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// Options configure the kind. There are no options; the zero value works.
type Options struct{}

// options are the keys of an event trigger besides those of all kinds.
type options struct {
	Source sentinels.EventSource `json:"source,omitempty" enum:"engine,user" doc:"whose events with a name of the form sentinel:ID:WORD" default:"engine where ID is a stored sentinel, else user"`
}

// Kind is the trigger kind "event". It is stateless.
type Kind struct{}

// New returns the trigger kind.
func New(Options) Kind { return Kind{} }

// Describe describes the kind "event".
func (Kind) Describe() triggers.Description {
	return triggers.Description{Name: "event", Field: sentinels.TriggerEvent, Options: options{}, Fires: "on events of the event log", Detail: detail, Warnings: warnings, Event: "the event itself: {name, id, source, time, data}; events of runs, sentinel:ID:WORD, are in `sentinel help events`"}
}

// detail lists the patterns, and whose events they take if the trigger says so.
func detail(t sentinels.Trigger) string {
	text := strings.ReplaceAll(t.Event, " ", ", ")
	var opt options
	if triggers.ReadOptions(t, &opt) == nil && opt.Source != "" {
		text += " of " + string(opt.Source)
	}
	return text
}

// warnings finds a source beside patterns that it says nothing about.
func warnings(t sentinels.Trigger) []string {
	var opt options
	if triggers.ReadOptions(t, &opt) != nil || opt.Source == "" {
		return nil
	}
	if slices.ContainsFunc(sentinels.PatternsByLog(t.Event), sentinels.IsRunEvent) {
		return nil
	}
	return []string{"source has no effect: it is about events of the form sentinel:ID:WORD"}
}

// Check reports problems of the patterns and the options of t.
func (k Kind) Check(t sentinels.Trigger) error {
	_, err := k.read(t)
	return err
}

func (Kind) read(t sentinels.Trigger) (opt options, problems error) {
	problems = triggers.ReadOptions(t, &opt)
	if opt.Source != "" && !slices.Contains(sentinels.EventSources(), opt.Source) {
		problems = errors.Join(problems, &sentinels.OptionError{Trigger: "event", Option: "source", Problem: fmt.Sprintf("is %q, want engine or user", opt.Source)})
	}
	for _, pattern := range strings.Split(t.Event, " ") {
		if !sentinels.ValidPattern(pattern) {
			invalid := fmt.Errorf("trigger \"event\": invalid event pattern %q: want names separated by colons, where * is one name and a final ** the rest", pattern)
			problems = errors.Join(invalid, problems)
		}
	}
	return opt, problems
}

// Arm prepares a trigger. It reads each log of its patterns from behind the newest event
// that it fired. A trigger that never fired reads from behind env.Positions.
func (k Kind) Arm(t sentinels.Trigger, env triggers.Env) (triggers.Armed, error) {
	opt, err := k.read(t)
	if err != nil {
		return nil, err
	}
	patterns := sentinels.PatternsByLog(t.Event)
	positions, err := readState(env.State, env.Positions, len(patterns))
	if err != nil {
		return nil, err
	}
	return &armed{patterns: patterns, source: opt.Source, events: env.Events, positions: positions}, nil
}

// state is what the trigger stores with each firing.
type state struct {
	Position uint64 `json:"position"`       // of the newest event that fired
	Runs     uint64 `json:"runs,omitempty"` // that of the log of events of runs, if the patterns are of both logs
}

// stateOf returns what is stored of positions.
func stateOf(positions []uint64) state {
	s := state{Position: positions[0]}
	if len(positions) > 1 {
		s.Runs = positions[1]
	}
	return s
}

// readState returns the stored positions, one for each log, or initial without a state.
func readState(raw json.RawMessage, initial []uint64, logs int) ([]uint64, error) {
	positions := make([]uint64, logs)
	if len(raw) == 0 {
		copy(positions, initial)
		return positions, nil
	}
	var s state
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("read state of event trigger: %w", err)
	}
	copy(positions, []uint64{s.Position, s.Runs})
	return positions, nil
}

var _ triggers.Kind = Kind{}
