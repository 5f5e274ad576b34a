package run

import (
	"encoding/json"
	"time"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A StepCall executes one step as a run of its own.
type StepCall struct {
	// Type is the step type, and Fields an object with its own fields. A text in them is
	// not read for references. A secret that is registered is removed from them.
	Type   sentinels.StepType
	Fields json.RawMessage
	// Name is what the run is called in lists, such as a command.
	Name string
	// Key, if set, is unique in the store: a second call with it waits for the run of the
	// first one and has its result. It does not count within the work of a host call, which
	// has a key of its own.
	Key string
	// Part distinguishes the calls within the work of one host call: a second one with the
	// same Part has the result of the first.
	Part string
	// Workspace and As are as in [StartOptions]. Default: those of the run that calls.
	Workspace string
	As        string
	// Timeout is the time limit of the step. Default: that of every step.
	Timeout time.Duration
	// Within are the commands that the step may call, by name and pattern, under the rules
	// for models. Default nil: those that its plugin may call.
	Within []string
	// OnInterrupt decides about host calls of the step in doubt. Default: as for every run.
	OnInterrupt sentinels.Interrupt
}
